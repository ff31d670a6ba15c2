/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of a gap is decoded from its beginning, one instruction after the other, and cut into
 * blocks at jumps and their targets. What a block does to the stack pointer is followed from the
 * entries along all jumps. At an entry the return address is on top of the stack, or on aarch64 in
 * the link register. An entry is a block that a call leads to, or that no jump leads to and nothing
 * runs into, unless it is a case of a switch (bare_cases.h).
 *
 * Blocks that jumps connect are judged together. They get rules only if all of this holds:
 *
 * - they return, and at each return the return address is where it was at the entry, with the
 *   caller's frame pointer (rbp, x29) in its register. Only helpers may lose that: each of their
 *   entries is the target of a direct call in the gap, and it is not known after those calls;
 * - ways that meet agree on the stack pointer, or on what the frame pointer has;
 * - jumps lead to the beginning of an instruction; those to another function, or out of the gap,
 *   leave the stack pointer and the frame pointer as a call would find them;
 * - a jump through a table has cases, if it is doubtful that the blocks are one function;
 * - if that is doubtful, the stack is ready for each call that leaves the gap
 *   (bare_state_may_call());
 * - nothing runs into bytes that are no code.
 *
 * Two kinds of blocks need no return. Some never return, such as what calls main(): they have one
 * entry, which is aligned or pointed to, no switch, and at least one call, and the stack is ready
 * for all of them. Others only jump to other functions, with their frame gone, after such calls, or
 * without any call if code has their address.
 *
 * Behind a call that leaves the gap another function may begin. What contradicts the state there is
 * blamed on the call: it never returns, and all is followed again without the way behind it. Where
 * nothing contradicts the state, but no return and no other way confirms it, there are no rules.
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
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/code/bare_blocks.h"
#include "symbolizer/indexer/code/bare_cases.h"
#include "symbolizer/indexer/code/bare_entry.h"
#include "symbolizer/indexer/code/bare_pointers.h"

enum {
	/*
	 * Of a gap, and of all gaps of a file; larger ones get no rules. libavcodec has 1 MiB in
	 * all. A program that was built without tables, such as Debian's chromium, has 150 MB.
	 */
	BARE_MAX_GAP = 4 << 20,
	BARE_MAX_BYTES = 8 << 20,
	BARE_MAX_ROUNDS = 16, /* each finds helpers that lose the frame pointer, for the next; a gap
				 that needs more has no rules */
	/* Each finds calls that never return, whose callers may not, either. The last one takes all
	   others to return. */
	BARE_MAX_PASSES = 8,
};

/* ---- following ------------------------------------------------------------------------------ */

/*
 * Assembly that calls its own functions need not align the stack, and libx264's x264_trellis_*() do
 * not. What looks like a function and is none, such as an exception handler of libstdc++, is told
 * apart by this.
 */
static bool bare_may_call(const struct bare *b, struct bare_block *block,
	const struct bare_state *s, const struct bare_instruction *i)
{
	return !bare_calls_outside(i) || bare_state_may_call(s) ||
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

/*
 * STATE cannot be right. If there is a call on the way that may not return, it does not. Returns
 * whether there is one.
 */
static bool bare_blame(struct bare *b, const struct bare_state *state)
{
	if (!state->doubt || b->is_last_pass)
		return false;
	b->instructions[state->doubt - 1].never_returns = true;
	b->has_last_calls = true;
	return true;
}

/* BLOCK, or what is behind it, contradicts STATE. */
static void bare_contradict(
	struct bare *b, struct bare_block *block, const struct bare_state *state)
{
	if (!bare_blame(b, state))
		bare_refuse(b, block);
}

/* BLOCK begins with STATE, too. */
static int bare_flow(struct bare *b, struct bare_block *block, const struct bare_state *state)
{
	if (!block->has_state) {
		block->state = *state;
		block->has_state = true;
		return bare_wait(b, block);
	}
	if (!bare_state_agrees(&block->state, state)) {
		if (!bare_blame(b, state) && !bare_blame(b, &block->state))
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
		bare_contradict(b, block, state);
	} else if (!state->has_callers_fp && !root->loses_fp) {
		root->loses_fp = true;
		b->has_news = true;
	}
}

/* Whether LAST, the jump at the end of BLOCK, leads to another function. */
static bool bare_is_tail_call(
	const struct bare *b, struct bare_block *block, const struct bare_instruction *last)
{
	struct bare_block *to;

	if (last->target >= b->instruction_count)
		return true;
	to = bare_block_of_target(b, last);
	return to->is_called && bare_root(b, to) != bare_root(b, block);
}

/* BLOCK ends with such a jump. */
static void bare_tail_call(struct bare *b, struct bare_block *block,
	const struct bare_instruction *last, const struct bare_state *state)
{
	struct bare_block *to;

	if (!bare_state_is_as_called(state))
		bare_contradict(b, block, state);
	if (last->target >= b->instruction_count) {
		bare_root(b, block)->leaves = true;
		return;
	}
	to = bare_block_of_target(b, last);
	bare_root(b, block)->returns = true;
	if (!bare_state_may_return(state))
		bare_refuse(b, to);
}

static bool bare_may_have_cases(const struct bare_instruction *last)
{
	return last->kind == CODE_INDIRECT_JUMP || last->is_halt;
}

/* BLOCK ends with the jump of a switch. */
static int bare_flow_to_cases(
	struct bare *b, struct bare_block *block, const struct bare_state *state)
{
	struct bare_block *to = block;
	int err = 0;

	if (!block->is_searched) {
		block->is_searched = true;
		err = array_reserve(
			b->switches, b->switch_capacity, b->switch_count + 1, BARE_MAX_BLOCKS);
		if (err)
			return err;
		b->switches[b->switch_count++] = (uint32_t)(block - b->blocks);
	}
	while (!err && (to = bare_next_case(b, block, to)) != NULL)
		if (!to->has_state || bare_state_agrees(&to->state, state))
			err = bare_flow(b, to, state);
	return err;
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
	} else if (bare_may_have_cases(last)) {
		bare_root(b, block)->leaves |=
			last->kind == CODE_INDIRECT_JUMP && bare_state_is_as_called(state);
		err = bare_flow_to_cases(b, block, state);
	} else if (last->kind == CODE_LEAVE || last->kind == CODE_JUMP ||
		   last->kind == CODE_BRANCH) {
		if (bare_is_tail_call(b, block, last))
			bare_tail_call(b, block, last, state);
		else
			err = bare_flow(b, bare_block_of_target(b, last), state);
	}
	return !err && next ? bare_flow(b, next, state) : err;
}

static void bare_note_call(
	const struct bare *b, struct bare_block *block, const struct bare_state *s)
{
	struct bare_block *root = bare_root(b, block);

	if (bare_state_may_call(s))
		root->has_ready_call = true;
	else
		root->has_other_call = true;
}

/* Follows BLOCK, unless it pops its return address. */
static int bare_follow_block(struct bare *b, struct bare_block *block)
{
	struct bare_state state = block->state;

	for (uint32_t i = block->first; i < block->end; i++) {
		const struct bare_instruction *at = &b->instructions[i];

		if (!bare_may_call(b, block, &state, at) ||
			bare_state_begins(&state, &at->effect)) {
			bare_contradict(b, block, &state);
			return 0;
		}
		if (at->kind == CODE_CALL)
			bare_note_call(b, block, &state);
		bare_run(b, &state, at);
		if (bare_is_above(&state)) {
			bare_contradict(b, block, &state);
			return 0;
		}
	}
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

/* A function that begins with a loop: the only way to its beginning comes from inside. */
static bool bare_is_looped(const struct bare *b, const struct bare_block *block)
{
	return !block->has_state && !block->is_fallen_into && block->is_jumped_to &&
	       bare_is_aligned(b, block->first);
}

/* Whether BLOCK is an entry which is neither aligned nor called directly. */
static bool bare_is_bad_entry(const struct bare *b, const struct bare_block *block)
{
	return bare_is_entry(block) && !block->is_called && !block->is_pointed_to &&
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
		if (bare_calls_outside(&b->instructions[i]) && b->instructions[i].is_doubtful &&
			!b->instructions[i].never_returns)
			return true;
	return false;
}

static void bare_judge_entries(const struct bare *b)
{
	for (size_t i = 0; i < b->block_count; i++) {
		struct bare_block *block = &b->blocks[i], *root = bare_root(b, block);

		root->is_doubtful |= bare_is_doubtful(b, block);
		root->has_other_entry |=
			bare_is_entry(block) && (!block->is_called || block->is_jumped_to);
		root->has_bad_entry |= (bare_is_bad_entry(b, block) && !block->is_stored) ||
				       (bare_is_entry(block) && root->has_entry);
		root->has_unshown_entry |=
			bare_is_entry(block) && !block->is_called && !block->is_pointed_to;
		root->has_entry |= bare_is_entry(block);
	}
}

/* The state at the end of BLOCK. */
static struct bare_state bare_state_behind(const struct bare *b, const struct bare_block *block)
{
	struct bare_state state = block->state;

	for (uint32_t i = block->first; i < block->end; i++)
		bare_run(b, &state, &b->instructions[i]);
	return state;
}

/* Whether BLOCK is before a call behind which STATE may be another function's. */
static bool bare_is_before_doubt(const struct bare_block *block, const struct bare_state *state)
{
	return block->first < state->doubt;
}

/* Finds the cases of the switch that BLOCK ends with. Returns whether there are new ones. */
static bool bare_find_cases(struct bare *b, struct bare_block *block)
{
	const struct bare_state state = bare_state_behind(b, block);
	struct bare_block *to = block;
	bool found = false;

	/* Without a frame, it may call another function so, and the next may be behind a hlt. */
	if (bare_state_may_return(&state))
		return false;
	while ((to = bare_next_candidate(b, block, to)) != NULL) {
		if (to->has_state || bare_is_before_doubt(to, &state) ||
			!bare_is_case(b, to, block, &state))
			continue;
		bare_join(b, block, to);
		to->is_case = true;
		found = true;
	}
	return found;
}

/* Whether the jump by a pointer that BLOCK ends with is a tail call: its frame is gone. */
static bool bare_is_indirect_tail_call(const struct bare *b, const struct bare_block *block)
{
	const struct bare_state state = bare_state_behind(b, block);

	return bare_state_is_as_called(&state);
}

/*
 * Whether TO is a case of the switch that BLOCK ends with, in STATE. Several jumps may share a
 * switch's cases. Those of another function may agree with STATE by chance, so that if it is in
 * doubt, what is right behind the jump has to be a case, too, as compilers mostly have it.
 */
static bool bare_is_own_case(const struct bare *b, struct bare_block *block,
	const struct bare_block *to, const struct bare_state *state)
{
	const struct bare_block *next = block + 1;

	if (!to->has_state || !bare_state_agrees(&to->state, state))
		return false;
	return !state->doubt ||
	       (next < b->blocks + b->block_count && (next->is_case || !bare_is_entry(next)) &&
		       bare_root(b, block + 1) == bare_root(b, block));
}

/* Whether a way leads to BLOCK that is confirmed (bare_write_rows()). */
static bool bare_is_confirmed(const struct bare_block *block)
{
	return block->is_proved || !block->state.doubt;
}

/* Whether the switch that BLOCK ends with has cases; CONFIRMED: one that is. */
static bool bare_has_own_case(const struct bare *b, struct bare_block *block, bool confirmed)
{
	const struct bare_state state = bare_state_behind(b, block);
	struct bare_block *to = block;

	while ((to = bare_next_case(b, block, to)) != NULL)
		if (bare_is_own_case(b, block, to, &state) && (!confirmed || bare_is_confirmed(to)))
			return true;
	return false;
}

/*
 * Whether BLOCK ends with a switch that has no cases, in what may be two functions: the frame at
 * the jump may be that of the first, and the jump in the second.
 */
static bool bare_is_doubtful_jump(const struct bare *b, struct bare_block *block)
{
	return bare_last(b, block)->kind == CODE_INDIRECT_JUMP &&
	       bare_root(b, block)->is_doubtful && !bare_has_own_case(b, block, false) &&
	       !bare_is_indirect_tail_call(b, block);
}

/* Looks for the cases of the switch that BLOCK ends with, and follows them. */
static int bare_search(struct bare *b, struct bare_block *block)
{
	int err = 0;

	if (!block->has_state || bare_root(b, block)->is_refused)
		return 0;
	if (bare_find_cases(b, block)) {
		err = bare_wait(b, block);
		if (!err)
			err = bare_follow_waiting(b);
	} else if (bare_is_doubtful_jump(b, block)) {
		const struct bare_state state = bare_state_behind(b, block);

		bare_contradict(b, block, &state);
	}
	return err;
}

static int bare_by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Follows the blocks that wait, and the cases of their switches. A case may have a switch, too. */
static int bare_follow_all_waiting(struct bare *b)
{
	int err = bare_follow_waiting(b);

	while (b->switch_count && !err) {
		size_t count = b->switch_count;

		qsort(b->switches, count, sizeof(b->switches[0]), bare_by_number);
		for (size_t i = 0; i < count && !err; i++)
			err = bare_search(b, &b->blocks[b->switches[i]]);
		b->switch_count -= count;
		memmove(b->switches, b->switches + count, b->switch_count * sizeof(b->switches[0]));
	}
	return err;
}

/* The cases of a switch may be before it: what may be one is followed as an entry in its turn. */
static int bare_follow_candidates(struct bare *b)
{
	const struct bare_state entry = bare_state_at_entry(b->machine);
	int err = 0;

	for (size_t i = 0; i < b->block_count && !err; i++) {
		if (!bare_is_entry(&b->blocks[i]) || b->blocks[i].has_state)
			continue;
		err = bare_flow(b, &b->blocks[i], &entry);
		if (!err)
			err = bare_follow_all_waiting(b);
	}
	return err;
}

static int bare_follow_entries(struct bare *b)
{
	const struct bare_state entry = bare_state_at_entry(b->machine);
	int err = 0;

	for (size_t i = 0; i < b->block_count && !err; i++)
		if (bare_is_entry(&b->blocks[i]) && !b->blocks[i].may_be_case)
			err = bare_flow(b, &b->blocks[i], &entry);
	if (!err)
		err = bare_follow_all_waiting(b);
	if (!err)
		err = bare_follow_candidates(b);
	for (size_t i = 0; i < b->block_count && !err; i++) {
		if (bare_is_looped(b, &b->blocks[i])) {
			bare_root(b, &b->blocks[i])->has_other_entry = true;
			err = bare_flow(b, &b->blocks[i], &entry);
		}
		if (!err)
			err = bare_follow_all_waiting(b);
	}
	return err;
}

/* What one round refused, the next would refuse, too: it knows only less of frame pointers. */
static int bare_follow(struct bare *b)
{
	int err;

	bare_note_doubtful_calls(b);
	bare_judge_entries(b);
	bare_note_candidates(b);
	for (int round = 0; round < BARE_MAX_ROUNDS; round++) {
		for (size_t i = 0; i < b->block_count; i++)
			b->blocks[i].has_state = b->blocks[i].is_searched = false;
		b->has_news = false;
		err = bare_follow_entries(b);
		if (err || !b->has_news)
			return err;
	}
	return -ENODATA;
}

/* ---- calls that do not return --------------------------------------------------------------- */

/* Whether the end of BLOCK may lead out of its function. */
static bool bare_may_leave(const struct bare *b, struct bare_block *block)
{
	const struct bare_instruction *last = bare_last(b, block);

	if (!block->has_state || !last->is_code)
		return true;
	switch (last->kind) {
	case CODE_RETURN:
	case CODE_LEAVE:
	case CODE_INDIRECT_JUMP:
		return true;
	case CODE_JUMP:
	case CODE_BRANCH:
		return bare_is_tail_call(b, block, last);
	default:
		return false;
	}
}

/* Whether all of the function that I calls was followed, and no way leads out of it. */
static bool bare_callee_stays(const struct bare *b, const struct bare_instruction *i)
{
	struct bare_block *callee = bare_block_of_target(b, i);
	const struct bare_block *root = bare_root(b, callee);

	return callee->has_state && !root->is_refused && !root->may_leave;
}

/* Whether the callee of I, which is in the gap, is known to return. */
static bool bare_call_returns(const struct bare *b, const struct bare_instruction *i)
{
	const struct bare_block *root = bare_root(b, bare_block_of_target(b, i));

	return root->returns && !root->is_refused;
}

/*
 * Finds calls in the gap that do not return: what is behind them belongs to another function, if
 * nothing jumps there. Returns whether more is known than before.
 */
static bool bare_find_last_calls(const struct bare *b)
{
	bool found = b->has_last_calls;

	for (size_t i = 0; i < b->block_count; i++)
		bare_root(b, &b->blocks[i])->may_leave |= bare_may_leave(b, &b->blocks[i]);
	for (size_t i = 0; i < b->instruction_count; i++) {
		struct bare_instruction *at = &b->instructions[i];

		if (at->kind != CODE_CALL || at->never_returns ||
			at->target >= b->instruction_count)
			continue;
		if (bare_callee_stays(b, at)) {
			at->never_returns = true;
			found = true;
		} else if (!at->is_unsure && !bare_call_returns(b, at)) {
			at->is_unsure = true;
			found = true;
		}
	}
	return found;
}

/* Cuts the gap into blocks and follows them. */
static int bare_follow_all(struct bare *b)
{
	int err = 0;

	for (int pass = 0; pass < BARE_MAX_PASSES && !err; pass++) {
		b->is_last_pass = pass == BARE_MAX_PASSES - 1;
		b->has_last_calls = false;
		err = bare_make_blocks(b);
		if (err)
			break;
		bare_connect(b);
		bare_note_pointers(b);
		err = bare_follow(b);
		if (!err && !bare_find_last_calls(b))
			break;
	}
	return err;
}

/* ---- rules ---------------------------------------------------------------------------------- */

/*
 * Behind a call that may not return, what was found is right if it leads to a return, or to where
 * it agrees with another way: else the next function may be there, and never return, either.
 */
static void bare_write_rows(
	const struct bare *b, const struct bare_block *block, const struct unwind_gap_sink *sink)
{
	struct bare_state state = block->state;
	uint32_t first = block->first;

	/* What is before a case is not run. */
	if (block->is_case)
		first = bare_skip_padding(b, first, block->end);
	for (uint32_t i = first; i < block->end && (!state.doubt || block->is_proved); i++) {
		const struct abi_unwind_rule rule = bare_state_rule(&state);
		uint64_t end = bare_rule_off(b, i + 1);

		if (rule.cfa != ABI_CFA_NONE)
			sink->row(sink->context, b->low + b->instructions[i].off, b->low + end,
				&rule);
		bare_run(b, &state, &b->instructions[i]);
	}
}

/* Whether BLOCK leads out of its function, or to a block that is confirmed. */
static bool bare_leads_to_proof(const struct bare *b, struct bare_block *block)
{
	const struct bare_instruction *last = bare_last(b, block);
	const struct bare_block *next = bare_next(b, block);

	if (last->kind == CODE_INDIRECT_JUMP)
		return bare_is_indirect_tail_call(b, block) || bare_has_own_case(b, block, true);
	if (last->is_code && bare_may_leave(b, block))
		return true;
	if (last->target < b->instruction_count && last->kind != CODE_CALL &&
		bare_is_confirmed(bare_block_of_target(b, last)))
		return true;
	return (next && bare_is_confirmed(next)) ||
	       (last->is_halt && bare_has_own_case(b, block, true));
}

/* What would take more rounds has no rules. */
static void bare_prove(const struct bare *b)
{
	bool found = true;

	for (int round = 0; round < BARE_MAX_ROUNDS && found; round++) {
		found = false;
		for (size_t i = b->block_count; i-- > 0;) {
			struct bare_block *block = &b->blocks[i];

			if (block->is_proved || !block->has_state || !bare_leads_to_proof(b, block))
				continue;
			block->is_proved = true;
			found = true;
		}
	}
}

static void bare_note_switches(const struct bare *b)
{
	for (size_t i = 0; i < b->block_count; i++)
		bare_root(b, &b->blocks[i])->has_switch |=
			bare_last(b, &b->blocks[i])->kind == CODE_INDIRECT_JUMP;
}

/* Whether the blocks of ROOT are a function without a return; its calls say how deep the stack is.
 */
static bool bare_never_returns(const struct bare_block *root)
{
	return root->has_entry && root->has_ready_call && !root->has_other_call &&
	       (root->leaves || (!root->has_bad_entry && !root->has_switch));
}

/* Whether they are one that calls nothing and goes on to another, as a callback's adapter does. */
static bool bare_goes_on(const struct bare_block *root)
{
	return root->has_entry && !root->has_unshown_entry && root->leaves &&
	       !root->has_ready_call && !root->has_other_call;
}

static bool bare_is_believed(const struct bare *b, struct bare_block *block)
{
	const struct bare_block *root = bare_root(b, block);

	return block->has_state && !root->is_refused &&
	       (root->returns || bare_never_returns(root) || bare_goes_on(root));
}

static void bare_write_known(
	const struct bare *b, const struct bare_block *block, const struct unwind_gap_sink *sink)
{
	const struct abi_unwind_rule rule = { .cfa = b->instructions[block->first].known };

	sink->row(sink->context, b->low + bare_rule_off(b, block->first),
		b->low + bare_rule_off(b, block->end), &rule);
}

/* Functions reach up to the next one: nothing tells where those that are not believed end. */
static void bare_write_functions(const struct bare *b, const struct unwind_gap_sink *sink)
{
	uint64_t begin = 0;
	bool is_open = false;

	for (size_t i = 0; i < b->block_count; i++) {
		const struct bare_block *block = &b->blocks[i];
		uint64_t at =
			b->low + bare_off(b, bare_skip_padding(b, block->first, block->end - 1));

		if (!bare_is_entry(block) || bare_is_bad_entry(b, block))
			continue;
		if (is_open)
			sink->function(sink->context, begin, at);
		begin = at;
		is_open = true;
	}
	if (is_open)
		sink->function(sink->context, begin, b->high);
}

static void bare_write(const struct bare *b, const struct unwind_gap_sink *sink)
{
	for (size_t i = 0; i < b->block_count; i++) {
		struct bare_block *block = &b->blocks[i];

		if (b->instructions[block->first].known)
			bare_write_known(b, block, sink);
		else if (bare_is_believed(b, block))
			bare_write_rows(b, block, sink);
	}
	bare_write_functions(b, sink);
}

/* ---- the source ----------------------------------------------------------------------------- */

static int bare_run_gap(
	void *state, uint64_t low, uint64_t high, const struct unwind_gap_sink *sink)
{
	struct bare *b = state;
	int err;

	if (high - low > MIN(BARE_MAX_GAP, b->bytes_left))
		return 0;
	b->bytes_left -= high - low;
	b->low = low;
	b->high = high;
	b->instruction_count = b->waiting_count = b->switch_count = 0;
	err = bare_decode(b);
	if (!err)
		err = bare_read_pointers(b);
	if (!err)
		err = bare_follow_all(b);
	if (err)
		return err == -ENOMEM ? err : 0;
	bare_note_switches(b);
	bare_prove(b);
	bare_write(b, sink);
	return 0;
}

static uint64_t bare_run_entry(void *state, uint64_t low, uint64_t high)
{
	return bare_entry_end(state, low, high);
}

static void bare_close(void *state)
{
	struct bare *b = state;

	code_effects_destroy(b->effects);
	free(b->instructions);
	free(b->blocks);
	free(b->waiting);
	free(b->switches);
	free(b->pointers);
	free(b);
}

int bare_open(struct elf_image *image, struct work *work, struct unwind_gap_source *ret_source)
{
	struct bare *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->image = image;
	b->work = work;
	b->bytes_left = BARE_MAX_BYTES;
	b->machine = bare_machine(elf_image_machine(image));
	err = b->machine ? code_effects_create(elf_image_machine(image), &b->effects) : -EOPNOTSUPP;
	if (err) {
		bare_close(b);
		return err;
	}
	*ret_source = (struct unwind_gap_source){
		.run = bare_run_gap, .entry_end = bare_run_entry, .close = bare_close, .state = b
	};
	return 0;
}
