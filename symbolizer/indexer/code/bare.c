/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of a gap is decoded from its beginning, one instruction after the other, and cut into
 * blocks at jumps and their targets. What a block does to the stack pointer is followed from the
 * entries, where the return address is on top of the stack, along all jumps. An entry is a block
 * that a call leads to, or that no jump leads to and nothing runs into.
 *
 * Blocks that jumps connect are judged together. They get rules only if all of this holds:
 *
 * - they return, and at each return the return address is on top of the stack again, with the
 *   caller's rbp in its register. Only helpers may lose rbp: each of their entries is the target of
 *   a direct call in the gap, and rbp is not known after those calls. Blocks that never
 *   return, such as what calls main(), have one entry and calls, the stack is aligned at all of
 *   these, and no next function may begin behind one;
 * - ways that meet agree on the stack pointer;
 * - jumps lead to the beginning of an instruction, or out of the gap as a call would;
 * - the stack is aligned at calls that leave the gap, unless nothing makes it doubtful that the
 *   blocks are a function (bare_is_doubtful());
 * - nothing runs into bytes that are no code.
 *
 * Apart from that, two kinds of code are known by their instructions: what signal handlers return
 * to, and a new thread's first call.
 *
 * So an offset is known from two sides. What looks like an entry and is not (a case of a switch, a
 * part that is reached by a return address which was stored by hand) disagrees with one of them,
 * and so does a helper that moves its caller's stack pointer, or code that switches stacks.
 */
#include "symbolizer/indexer/code/bare.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/code/bare_state.h"
#include "symbolizer/indexer/code/effect.h"
#include "symbolizer/indexer/code/known.h"

enum {
	BARE_ALIGN = 16, /* of functions, where decoding goes on behind bytes that are no code */
	/*
	 * Of a gap, and of all gaps of a file; larger ones get no rules. libavcodec has 1 MiB in
	 * all. A program that was built without tables, such as Debian's chromium, has 150 MB.
	 */
	BARE_MAX_GAP = 4 << 20,
	BARE_MAX_BYTES = 8 << 20,
	BARE_MAX_INSTRUCTIONS = 1 << 20,
	BARE_MAX_BLOCKS = 1 << 18,
	BARE_INSTRUCTION_STEPS = 16, /* of work */
	BARE_MAX_ROUNDS = 16, /* each finds helpers that lose rbp, for the next; a gap that needs
				 more has no rules */
	BARE_BEGINNING = 16, /* instructions by which a function's beginning is told */
};

struct bare_instruction {
	uint32_t off; /* in the gap */
	/* Of jumps and calls: number of an instruction, or one of the two below. */
	uint32_t target;
	uint32_t block;
	struct code_effect effect;
	uint8_t kind; /* enum code_kind */
	bool is_code; /* false: bytes that are none */
	bool is_loop; /* a conditional jump behind it leads here */
	uint8_t known; /* enum abi_cfa of code that is known by its instructions, else 0 */
};

static const uint32_t BARE_OUTSIDE = UINT32_MAX; /* another target, or none */
static const uint32_t BARE_MIDDLE = UINT32_MAX - 1; /* of an instruction */

struct bare_block {
	uint32_t first, end; /* instructions */
	uint32_t parent; /* of the union of connected blocks; its root has what follows up to
			    is_called */
	bool is_refused, returns, is_doubtful;
	bool has_other_entry; /* that no direct call leads to */
	bool has_bad_entry; /* that is neither called directly nor aligned, or is the second one */
	bool has_entry, may_be_two;
	bool has_aligned_call, has_other_call;
	bool loses_fp; /* returns with another value in rbp than at its entry */
	bool is_called; /* by a direct call */
	bool is_fallen_into, is_jumped_to;
	bool is_padding; /* nothing but nops, and nothing leads there */
	bool has_state, waits;
	struct bare_state state; /* at its beginning */
};

struct bare {
	const struct elf_image *image;
	struct work *work;
	struct code_effects *effects;
	uint64_t bytes_left;

	/* Of the gap being read. */
	uint64_t low, high;
	struct bare_instruction *instructions;
	size_t instruction_count, instruction_capacity;
	struct bare_block *blocks;
	size_t block_count, block_capacity;
	uint32_t *waiting; /* blocks whose state has changed */
	size_t waiting_count, waiting_capacity;
	bool has_news; /* a helper was found to lose rbp: its callers are to be followed again */
};

/* ---- instructions --------------------------------------------------------------------------- */

static bool bare_stops(const struct bare_instruction *i)
{
	return !i->is_code || i->kind == CODE_RETURN || i->kind == CODE_JUMP ||
	       i->kind == CODE_LEAVE || i->kind == CODE_INDIRECT_JUMP || i->kind == CODE_STOP;
}

static uint32_t bare_target(const struct bare *b, uint64_t target)
{
	return target >= b->low && target < b->high ? (uint32_t)(target - b->low) : BARE_OUTSIDE;
}

static int bare_add_instruction(struct bare *b, const struct bare_instruction *i)
{
	int err = array_reserve(b->instructions, b->instruction_capacity, b->instruction_count + 1,
		BARE_MAX_INSTRUCTIONS);

	if (!err)
		b->instructions[b->instruction_count++] = *i;
	return err;
}

/*
 * Returns the size of the instruction at OFF, or of bytes that are none. Its target is an offset,
 * too, until all instructions are known.
 */
static uint32_t bare_decode_one(
	const struct bare *b, const uint8_t *bytes, uint32_t off, struct bare_instruction *ret_i)
{
	const size_t left = (size_t)(b->high - b->low) - off;
	struct code_instruction flow;

	*ret_i = (struct bare_instruction){ .off = off, .target = BARE_OUTSIDE };
	if (!code_effect(b->effects, bytes + off, left, b->low + off, &flow, &ret_i->effect))
		return BARE_ALIGN - (uint32_t)((b->low + off) % BARE_ALIGN);
	ret_i->is_code = true;
	ret_i->kind = (uint8_t)flow.kind;
	if (flow.kind == CODE_JUMP || flow.kind == CODE_BRANCH || flow.kind == CODE_CALL)
		ret_i->target = bare_target(b, flow.target);
	return flow.size;
}

/* The number of the instruction that begins at OFF, or BARE_MIDDLE. */
static uint32_t bare_at(const struct bare *b, uint32_t off)
{
	size_t low = 0, high = b->instruction_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->instructions[middle].off < off)
			low = middle + 1;
		else
			high = middle;
	}
	return low < b->instruction_count && b->instructions[low].off == off ? (uint32_t)low
									     : BARE_MIDDLE;
}

/* BYTES: the gap's. A nop before what handlers return to is for unwinders that look up pc - 1. */
static void bare_mark_known(const struct bare *b, const uint8_t *bytes)
{
	for (size_t i = 0; i < b->instruction_count; i++) {
		struct bare_instruction *at = &b->instructions[i];
		struct known_code code;

		if (!known_code_at(bytes + at->off, (size_t)(b->high - b->low) - at->off, &code) ||
			code.instructions > b->instruction_count - i)
			continue;
		for (size_t k = 0; k < code.instructions; k++)
			at[k].known = code.cfa;
		at[code.instructions - 1].kind = CODE_STOP;
		if (code.cfa == ABI_CFA_SIGNAL && i && at[-1].kind == CODE_NOP)
			at[-1].known = code.cfa;
	}
}

/* Turns the target of instruction NUMBER from an offset into an instruction's number. */
static void bare_set_target(const struct bare *b, uint32_t number)
{
	struct bare_instruction *i = &b->instructions[number];

	i->target = bare_at(b, i->target);
	if (i->kind == CODE_BRANCH && i->target < number)
		b->instructions[i->target].is_loop = true;
}

/* -ENODATA: the gap is not in the file, or the work is spent. */
static int bare_decode(struct bare *b)
{
	struct cursor code = elf_image_at(b->image, b->low, b->high - b->low);
	const uint8_t *bytes = code.at;
	int err = 0;

	if (code.bad || cursor_left(&code) != b->high - b->low)
		return -ENODATA;
	for (uint32_t off = 0; off < b->high - b->low && !err;) {
		struct bare_instruction i;

		if (!work_spend(b->work, BARE_INSTRUCTION_STEPS))
			return -ENODATA;
		off += bare_decode_one(b, bytes, off, &i);
		err = bare_add_instruction(b, &i);
	}
	bare_mark_known(b, bytes);
	for (size_t i = 0; i < b->instruction_count && !err; i++)
		if (b->instructions[i].target != BARE_OUTSIDE)
			bare_set_target(b, (uint32_t)i);
	return err;
}

/* The offset of instruction NUMBER, or of the gap's end. */
static uint64_t bare_off(const struct bare *b, uint32_t number)
{
	return number < b->instruction_count ? b->instructions[number].off : b->high - b->low;
}

/* Whether the compiler or assembler could have put a function at instruction NUMBER. */
static bool bare_is_aligned(const struct bare *b, uint32_t number)
{
	return !((b->low + bare_off(b, number)) % BARE_ALIGN);
}

/* The first instruction from NUMBER up to END that is no padding, or END. */
static uint32_t bare_skip_padding(const struct bare *b, uint32_t number, uint32_t end)
{
	while (number < end && b->instructions[number].kind == CODE_NOP)
		number++;
	return number;
}

static bool bare_calls_outside(const struct bare_instruction *i)
{
	return i->kind == CODE_CALL && i->target == BARE_OUTSIDE;
}

/*
 * Whether instruction NUMBER is a call that has only padding behind it, up to where a function may
 * begin: the callee does not return. Loops are aligned, too.
 */
static bool bare_is_last_call(const struct bare *b, uint32_t number)
{
	uint32_t next;

	if (b->instructions[number].kind != CODE_CALL)
		return false;
	next = bare_skip_padding(b, number + 1, (uint32_t)b->instruction_count);
	if (next == b->instruction_count)
		return true;
	return next > number + 1 && bare_is_aligned(b, next) && !b->instructions[next].is_loop;
}

/* Whether instruction NUMBER is the last one before known code. */
static bool bare_is_before_known(const struct bare *b, uint32_t number)
{
	return number + 1 < b->instruction_count && !b->instructions[number].known &&
	       b->instructions[number + 1].known;
}

static bool bare_ends(const struct bare *b, uint32_t number)
{
	return bare_stops(&b->instructions[number]) || bare_is_last_call(b, number) ||
	       bare_is_before_known(b, number);
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* A bit for each instruction that a block begins with. -ENOMEM. */
static int bare_find_leaders(const struct bare *b, uint8_t **ret_leaders)
{
	uint8_t *leaders = calloc(b->instruction_count / 8 + 1, 1);

	if (!leaders)
		return -ENOMEM;
	for (size_t i = 0; i < b->instruction_count; i++) {
		const struct bare_instruction *at = &b->instructions[i];

		if (at->target < b->instruction_count)
			leaders[at->target / 8] |= (uint8_t)(1 << at->target % 8);
		if ((bare_ends(b, (uint32_t)i) || at->kind == CODE_BRANCH) &&
			i + 1 < b->instruction_count)
			leaders[(i + 1) / 8] |= (uint8_t)(1 << (i + 1) % 8);
	}
	*ret_leaders = leaders;
	return 0;
}

static int bare_make_blocks(struct bare *b)
{
	autofree uint8_t *leaders = NULL;
	int err = bare_find_leaders(b, &leaders);

	for (uint32_t i = 0; i < b->instruction_count && !err; i++) {
		if (!i || leaders[i / 8] >> i % 8 & 1) {
			err = array_reserve(
				b->blocks, b->block_capacity, b->block_count + 1, BARE_MAX_BLOCKS);
			if (err)
				break;
			b->blocks[b->block_count] = (struct bare_block){ .first = i,
				.parent = (uint32_t)b->block_count };
			b->block_count++;
		}
		b->instructions[i].block = (uint32_t)b->block_count - 1;
		b->blocks[b->block_count - 1].end = i + 1;
	}
	return err;
}

/* The block that I, a jump or call to an instruction, leads to: it begins there. */
static struct bare_block *bare_block_of_target(
	const struct bare *b, const struct bare_instruction *i)
{
	return &b->blocks[b->instructions[i->target].block];
}

static struct bare_block *bare_root(const struct bare *b, struct bare_block *block)
{
	while (&b->blocks[block->parent] != block) {
		block->parent = b->blocks[block->parent].parent;
		block = &b->blocks[block->parent];
	}
	return block;
}

static void bare_refuse(const struct bare *b, struct bare_block *block)
{
	bare_root(b, block)->is_refused = true;
}

static void bare_join(const struct bare *b, struct bare_block *one, struct bare_block *other)
{
	struct bare_block *root = bare_root(b, one), *joined = bare_root(b, other);

	if (root == joined)
		return;
	joined->parent = (uint32_t)(root - b->blocks);
	root->is_refused |= joined->is_refused;
}

static const struct bare_instruction *bare_last(
	const struct bare *b, const struct bare_block *block)
{
	return &b->instructions[block->end - 1];
}

/* The block that BLOCK runs on into, or NULL. */
static struct bare_block *bare_next(const struct bare *b, struct bare_block *block)
{
	if (bare_ends(b, block->end - 1) || block + 1 == b->blocks + b->block_count)
		return NULL;
	return block + 1;
}

static bool bare_has_only_nops(const struct bare *b, const struct bare_block *block)
{
	for (uint32_t i = block->first; i < block->end; i++)
		if (b->instructions[i].kind != CODE_NOP || !b->instructions[i].is_code)
			return false;
	return true;
}

static void bare_note_targets(const struct bare *b, struct bare_block *block)
{
	for (uint32_t i = block->first; i < block->end; i++) {
		const struct bare_instruction *at = &b->instructions[i];
		struct bare_block *to;

		if (at->target == BARE_OUTSIDE)
			continue;
		if (at->target == BARE_MIDDLE) {
			bare_refuse(b, block);
			continue;
		}
		to = bare_block_of_target(b, at);
		if (at->kind == CODE_CALL) {
			to->is_called = true;
		} else {
			to->is_jumped_to = true;
			bare_join(b, block, to);
		}
	}
}

/* Padding before the target of a jump is not a way to it. */
static void bare_note_order(const struct bare *b, struct bare_block *block)
{
	struct bare_block *next = bare_next(b, block);

	block->is_padding = !block->is_fallen_into && !block->is_jumped_to && !block->is_called &&
			    bare_has_only_nops(b, block);
	if (block->is_padding)
		return;
	if (next) {
		next->is_fallen_into = true;
		bare_join(b, block, next);
	} else if (!bare_ends(b, block->end - 1) || !bare_last(b, block)->is_code) {
		bare_refuse(b, block);
	}
}

static void bare_connect(const struct bare *b)
{
	for (size_t i = 0; i < b->block_count; i++)
		bare_note_targets(b, &b->blocks[i]);
	for (size_t i = 0; i < b->block_count; i++)
		bare_note_order(b, &b->blocks[i]);
}

static void bare_run(const struct bare *b, struct bare_state *s, const struct bare_instruction *i)
{
	bare_state_run(s, i->kind, &i->effect);
	if (i->kind == CODE_CALL && i->target < b->instruction_count &&
		bare_root(b, bare_block_of_target(b, i))->loses_fp)
		bare_state_lose_fp(s);
}

/* ---- following ------------------------------------------------------------------------------ */

/*
 * System V ABI, 3.2.2: the stack is aligned at a call. Assembly that calls its own functions need
 * not do that, and libx264's x264_trellis_*() do not. What looks like a function and is none, such
 * as an exception handler of libstdc++, is told apart by this.
 */
static bool bare_may_call(const struct bare *b, struct bare_block *block,
	const struct bare_state *s, const struct bare_instruction *i)
{
	return !bare_calls_outside(i) || s->is_realigned || !(s->sp % BARE_ALIGN) ||
	       !bare_root(b, block)->is_doubtful;
}

static int bare_wait(struct bare *b, struct bare_block *block)
{
	int err;

	if (block->waits)
		return 0;
	err = array_reserve(b->waiting, b->waiting_capacity, b->waiting_count + 1, BARE_MAX_BLOCKS);
	if (err)
		return err;
	b->waiting[b->waiting_count++] = (uint32_t)(block - b->blocks);
	block->waits = true;
	return 0;
}

/* BLOCK begins with STATE, too. */
static int bare_flow(struct bare *b, struct bare_block *block, const struct bare_state *state)
{
	if (!block->has_state) {
		block->state = *state;
		block->has_state = true;
		return bare_wait(b, block);
	}
	if (block->state.is_realigned != state->is_realigned || block->state.sp != state->sp) {
		bare_refuse(b, block);
		return 0;
	}
	return bare_state_meet(&block->state, state) ? bare_wait(b, block) : 0;
}

static void bare_return(struct bare *b, struct bare_block *block, const struct bare_state *state)
{
	struct bare_block *root = bare_root(b, block);

	root->returns = true;
	if (!bare_state_may_return(state) || (!state->has_callers_fp && root->has_other_entry)) {
		bare_refuse(b, block);
	} else if (!state->has_callers_fp && !root->loses_fp) {
		root->loses_fp = true;
		b->has_news = true;
	}
}

/* The end of BLOCK, with STATE before its last instruction's jump. */
static int bare_leave_block(
	struct bare *b, struct bare_block *block, const struct bare_state *state)
{
	const struct bare_instruction *last = bare_last(b, block);
	struct bare_block *next = bare_next(b, block);
	int err = 0;

	if (last->kind == CODE_RETURN) {
		bare_return(b, block, state);
	} else if (last->kind == CODE_LEAVE || last->kind == CODE_JUMP ||
		   last->kind == CODE_BRANCH) {
		if (last->target != BARE_OUTSIDE)
			err = bare_flow(b, bare_block_of_target(b, last), state);
		else if (!bare_state_is_as_called(state))
			bare_refuse(b, block);
	}
	return !err && next ? bare_flow(b, next, state) : err;
}

/* Whether the stack pointer is above the return address. */
static bool bare_is_above(const struct bare_state *s)
{
	return !s->is_realigned && s->sp > -BARE_WORD;
}

static void bare_note_call(
	const struct bare *b, struct bare_block *block, const struct bare_state *s)
{
	struct bare_block *root = bare_root(b, block);

	if (s->is_realigned || !(s->sp % BARE_ALIGN))
		root->has_aligned_call = true;
	else
		root->has_other_call = true;
}

/* Follows BLOCK, unless it pops its return address. */
static int bare_follow_block(struct bare *b, struct bare_block *block)
{
	struct bare_state state = block->state;

	for (uint32_t i = block->first; i < block->end; i++) {
		if (!bare_may_call(b, block, &state, &b->instructions[i]))
			bare_refuse(b, block);
		if (b->instructions[i].kind == CODE_CALL)
			bare_note_call(b, block, &state);
		bare_run(b, &state, &b->instructions[i]);
		if (bare_is_above(&state))
			bare_refuse(b, block);
	}
	if (bare_root(b, block)->is_refused)
		return 0;
	return bare_leave_block(b, block, &state);
}

static int bare_follow_waiting(struct bare *b)
{
	int err = 0;

	while (b->waiting_count && !err) {
		struct bare_block *block = &b->blocks[b->waiting[--b->waiting_count]];

		block->waits = false;
		if (!work_spend(b->work, BARE_INSTRUCTION_STEPS * (block->end - block->first)))
			return -ENODATA;
		if (!bare_root(b, block)->is_refused)
			err = bare_follow_block(b, block);
	}
	return err;
}

static bool bare_is_entry(const struct bare_block *block)
{
	return block->is_called ||
	       (!block->is_fallen_into && !block->is_jumped_to && !block->is_padding);
}

/* A function that begins with a loop: the only way to its beginning comes from inside. */
static bool bare_is_looped(const struct bare *b, const struct bare_block *block)
{
	return !block->has_state && !block->is_fallen_into && block->is_jumped_to &&
	       bare_is_aligned(b, block->first);
}

/* Whether a function may begin with instruction NUMBER: it would not pop what it has not pushed. */
static bool bare_may_begin(const struct bare *b, uint32_t number)
{
	struct bare_state state = bare_state_at_entry();
	uint32_t end;

	if (number == b->instruction_count)
		return true;
	end = MIN(b->blocks[b->instructions[number].block].end, number + BARE_BEGINNING);
	for (uint32_t i = number; i < end; i++) {
		bare_run(b, &state, &b->instructions[i]);
		if (bare_is_above(&state))
			return false;
	}
	return true;
}

static bool bare_may_be_next(const struct bare *b, uint32_t number)
{
	return bare_is_aligned(b, number) && bare_may_begin(b, number);
}

/* Whether BLOCK is an entry which is neither aligned nor called directly. */
static bool bare_is_bad_entry(const struct bare *b, const struct bare_block *block)
{
	return bare_is_entry(block) && !block->is_called &&
	       !bare_is_aligned(b, bare_skip_padding(b, block->first, block->end - 1));
}

/*
 * Whether BLOCK makes it doubtful that the blocks connected with it are one function: it is an
 * entry which is neither aligned nor called directly, or it has a call that leaves the gap and need
 * not return, since the next function may begin behind it.
 */
static bool bare_is_doubtful(const struct bare *b, const struct bare_block *block)
{
	if (bare_is_bad_entry(b, block))
		return true;
	for (uint32_t i = block->first; i < block->end; i++)
		if (bare_calls_outside(&b->instructions[i]) && bare_may_be_next(b, i + 1))
			return true;
	return false;
}

static void bare_judge_entries(const struct bare *b)
{
	for (size_t i = 0; i < b->block_count; i++) {
		struct bare_block *block = &b->blocks[i], *root = bare_root(b, block);

		root->is_doubtful |= bare_is_doubtful(b, block);
		root->has_other_entry |= bare_is_entry(block) && !block->is_called;
		root->has_bad_entry |=
			bare_is_bad_entry(b, block) || (bare_is_entry(block) && root->has_entry);
		root->has_entry |= bare_is_entry(block);
	}
}

static int bare_follow_entries(struct bare *b)
{
	const struct bare_state entry = bare_state_at_entry();
	int err = 0;

	for (size_t i = 0; i < b->block_count && !err; i++)
		if (bare_is_entry(&b->blocks[i]))
			err = bare_flow(b, &b->blocks[i], &entry);
	if (!err)
		err = bare_follow_waiting(b);
	for (size_t i = 0; i < b->block_count && !err; i++) {
		if (bare_is_looped(b, &b->blocks[i])) {
			bare_root(b, &b->blocks[i])->has_other_entry = true;
			err = bare_flow(b, &b->blocks[i], &entry);
		}
		if (!err)
			err = bare_follow_waiting(b);
	}
	return err;
}

/* What one round refused, the next would refuse, too: it knows only less of rbp. */
static int bare_follow(struct bare *b)
{
	int err;

	bare_judge_entries(b);
	for (int round = 0; round < BARE_MAX_ROUNDS; round++) {
		for (size_t i = 0; i < b->block_count; i++)
			b->blocks[i].has_state = false;
		b->has_news = false;
		err = bare_follow_entries(b);
		if (err || !b->has_news)
			return err;
	}
	return -ENODATA;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void bare_write_rows(const struct bare *b, const struct bare_block *block,
	unwind_source_sink *sink, void *context)
{
	struct bare_state state = block->state;

	for (uint32_t i = block->first; i < block->end; i++) {
		const struct abi_unwind_rule rule = bare_state_rule(&state);
		uint64_t end = bare_off(b, i + 1);

		if (rule.cfa != ABI_CFA_NONE)
			sink(context, b->low + b->instructions[i].off, b->low + end, &rule);
		bare_run(b, &state, &b->instructions[i]);
	}
}

/* Whether the callee of I is known to return. */
static bool bare_call_returns(const struct bare *b, const struct bare_instruction *i)
{
	return i->target < b->instruction_count &&
	       bare_root(b, bare_block_of_target(b, i))->returns;
}

/* Whether BLOCK may be the end of one function and the beginning of the next. */
static bool bare_may_be_two(const struct bare *b, const struct bare_block *block)
{
	if (bare_last(b, block)->kind == CODE_INDIRECT_JUMP)
		return true;
	for (uint32_t i = block->first; i < block->end; i++)
		if (b->instructions[i].kind == CODE_CALL && bare_may_be_next(b, i + 1) &&
			!bare_call_returns(b, &b->instructions[i]))
			return true;
	return false;
}

static void bare_judge_without_return(const struct bare *b)
{
	for (size_t i = 0; i < b->block_count; i++) {
		struct bare_block *root = bare_root(b, &b->blocks[i]);

		if (!root->returns && !root->may_be_two)
			root->may_be_two = bare_may_be_two(b, &b->blocks[i]);
	}
}

/* Whether the blocks of ROOT are a function without a return; its calls say how deep the stack is.
 */
static bool bare_never_returns(const struct bare_block *root)
{
	return root->has_entry && !root->has_bad_entry && !root->may_be_two &&
	       root->has_aligned_call && !root->has_other_call;
}

static bool bare_is_believed(const struct bare *b, struct bare_block *block)
{
	const struct bare_block *root = bare_root(b, block);

	return block->has_state && !root->is_refused && (root->returns || bare_never_returns(root));
}

static void bare_write_known(const struct bare *b, const struct bare_block *block,
	unwind_source_sink *sink, void *context)
{
	const struct abi_unwind_rule rule = { .cfa = b->instructions[block->first].known };

	sink(context, b->low + bare_off(b, block->first), b->low + bare_off(b, block->end), &rule);
}

static void bare_write(const struct bare *b, unwind_source_sink *sink, void *context)
{
	for (size_t i = 0; i < b->block_count; i++) {
		struct bare_block *block = &b->blocks[i];

		if (b->instructions[block->first].known)
			bare_write_known(b, block, sink, context);
		else if (bare_is_believed(b, block))
			bare_write_rows(b, block, sink, context);
	}
}

/* ---- the source ----------------------------------------------------------------------------- */

static int bare_run_gap(
	void *state, uint64_t low, uint64_t high, unwind_source_sink *sink, void *context)
{
	struct bare *b = state;
	int err;

	if (high - low > MIN(BARE_MAX_GAP, b->bytes_left))
		return 0;
	b->bytes_left -= high - low;
	b->low = low;
	b->high = high;
	b->instruction_count = b->block_count = b->waiting_count = 0;
	err = bare_decode(b);
	if (!err)
		err = bare_make_blocks(b);
	if (err)
		return err == -ENOMEM ? err : 0;
	bare_connect(b);
	err = bare_follow(b);
	if (err)
		return err == -ENOMEM ? err : 0;
	bare_judge_without_return(b);
	bare_write(b, sink, context);
	return 0;
}

static void bare_close(void *state)
{
	struct bare *b = state;

	code_effects_destroy(b->effects);
	free(b->instructions);
	free(b->blocks);
	free(b->waiting);
	free(b);
}

int bare_open(
	const struct elf_image *image, struct work *work, struct unwind_gap_source *ret_source)
{
	struct bare *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->image = image;
	b->work = work;
	b->bytes_left = BARE_MAX_BYTES;
	err = code_effects_create(elf_image_machine(image), &b->effects);
	if (err) {
		bare_close(b);
		return err;
	}
	*ret_source =
		(struct unwind_gap_source){ .run = bare_run_gap, .close = bare_close, .state = b };
	return 0;
}
