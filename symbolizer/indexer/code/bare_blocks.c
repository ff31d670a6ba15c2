/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/bare_blocks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/code/known.h"

enum {
	BARE_MAX_INSTRUCTIONS = 1 << 20,
	BARE_BEGINNING = 32, /* instructions by which a function's beginning is told */
	X86_HLT = 0xf4,
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

/* Whether SIZE bytes, up to where code may go on, are what linkers put behind a section's last
 * instruction, which is LAST or NULL. */
static bool bare_is_filling(
	const struct bare_instruction *last, const uint8_t *bytes, uint32_t size)
{
	if (last && !bare_stops(last) && last->kind != CODE_CALL)
		return false;
	while (size && !*bytes++)
		size--;
	return !size;
}

/*
 * Returns the size of the instruction at OFF, or of bytes that are none. Its target is an offset,
 * too, until all instructions are known.
 */
static uint32_t bare_decode_one(
	const struct bare *b, const uint8_t *bytes, uint32_t off, struct bare_instruction *ret_i)
{
	const uint32_t left = (uint32_t)(b->high - b->low) - off;
	const uint32_t step = b->machine->step - (uint32_t)((b->low + off) % b->machine->step);
	const struct bare_instruction *last =
		b->instruction_count ? &b->instructions[b->instruction_count - 1] : NULL;
	struct code_instruction flow;

	*ret_i = (struct bare_instruction){
		.off = off, .target = BARE_OUTSIDE, .place = BARE_OUTSIDE
	};
	if (bare_is_filling(last, bytes + off, MIN(step, left)) ||
		!code_effect(b->effects, bytes + off, left, b->low + off, &flow, &ret_i->effect))
		return step;
	ret_i->is_code = true;
	ret_i->kind = (uint8_t)flow.kind;
	ret_i->is_halt = flow.kind == CODE_STOP && flow.size == 1 && bytes[off] == X86_HLT;
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

/*
 * Unwinders look up the byte before a return address, also of a handler, which returns to the first
 * instruction of I. Where there is no nop for that, as in musl on aarch64, that byte is of another
 * function's last instruction, which runs only with its first byte's address.
 */
static void bare_start_early(const struct bare *b, struct bare_instruction *i)
{
	if (i[-1].kind == CODE_NOP)
		i[-1].known = i->known;
	else
		i->starts_early = b->machine->instruction_bytes && i[-1].kind != CODE_CALL;
}

/* BYTES: the gap's. */
static void bare_mark_known(const struct bare *b, const uint8_t *bytes)
{
	for (size_t i = 0; i < b->instruction_count; i++) {
		struct bare_instruction *at = &b->instructions[i];
		struct known_code code;

		if (!known_code_at(elf_image_machine(b->image), bytes + at->off,
			    (size_t)(b->high - b->low) - at->off, &code) ||
			code.instructions > b->instruction_count - i)
			continue;
		for (size_t k = 0; k < code.instructions; k++)
			at[k].known = code.cfa;
		at[code.instructions - 1].kind = CODE_STOP;
		if (code.cfa == ABI_CFA_SIGNAL && i)
			bare_start_early(b, at);
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

/*
 * Notes whose address I computes, in one instruction or in two: aarch64 adds an offset in a page to
 * that of the page. PLACES: what registers have, as far as it is an address; 0 = not known.
 */
static void bare_note_pointer(
	const struct bare *b, struct bare_instruction *i, uint64_t places[CODE_REGISTERS])
{
	const struct code_effect *e = &i->effect;
	uint64_t place = 0;

	if (!i->is_code)
		return;
	if (e->kind == CODE_EFFECT_POINT)
		place = b->low + i->off + (uint64_t)(int64_t)e->value;
	else if (e->kind == CODE_EFFECT_COPY && e->from < CODE_REGISTERS && places[e->from])
		place = places[e->from] + (uint64_t)(int64_t)e->value;
	for (int k = 0; k < CODE_REGISTERS; k++)
		if (i->kind == CODE_CALL || e->writes >> k & 1)
			places[k] = 0;
	if (e->kind != CODE_EFFECT_STORE && e->to < CODE_REGISTERS)
		places[e->to] = place;
	if (place)
		i->place = bare_target(b, place);
}

int bare_decode(struct bare *b)
{
	uint64_t places[CODE_REGISTERS] = { 0 };
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
		bare_note_pointer(b, &i, places);
		err = bare_add_instruction(b, &i);
	}
	bare_mark_known(b, bytes);
	for (size_t i = 0; i < b->instruction_count && !err; i++) {
		struct bare_instruction *at = &b->instructions[i];

		if (at->target != BARE_OUTSIDE)
			bare_set_target(b, (uint32_t)i);
		if (at->place != BARE_OUTSIDE)
			at->place = bare_at(b, at->place);
	}
	return err;
}

uint64_t bare_off(const struct bare *b, uint32_t number)
{
	return number < b->instruction_count ? b->instructions[number].off : b->high - b->low;
}

uint64_t bare_rule_off(const struct bare *b, uint32_t number)
{
	const bool early = number < b->instruction_count && b->instructions[number].starts_early;

	return bare_off(b, number) - early;
}

bool bare_is_aligned(const struct bare *b, uint32_t number)
{
	return !((b->low + bare_off(b, number)) % BARE_ALIGN);
}

uint32_t bare_skip_padding(const struct bare *b, uint32_t number, uint32_t end)
{
	while (number < end && b->instructions[number].kind == CODE_NOP)
		number++;
	return number;
}

uint32_t bare_number_at(const struct bare *b, uint64_t address)
{
	return bare_at(b, (uint32_t)(address - b->low));
}

bool bare_calls_outside(const struct bare_instruction *i)
{
	return i->kind == CODE_CALL && i->target == BARE_OUTSIDE;
}

/*
 * Whether instruction NUMBER is a call that has only padding behind it, up to where a function may
 * begin, or to what is no code: the callee does not return. Loops are aligned, too.
 */
static bool bare_is_last_call(const struct bare *b, uint32_t number)
{
	uint32_t next;

	if (b->instructions[number].kind != CODE_CALL)
		return false;
	next = bare_skip_padding(b, number + 1, (uint32_t)b->instruction_count);
	if (next == b->instruction_count || !b->instructions[next].is_code)
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
	return bare_stops(&b->instructions[number]) || b->instructions[number].never_returns ||
	       bare_is_last_call(b, number) || bare_is_before_known(b, number);
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

int bare_make_blocks(struct bare *b)
{
	autofree uint8_t *leaders = NULL;
	int err = bare_find_leaders(b, &leaders);

	b->block_count = 0;
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

struct bare_block *bare_block_of_target(const struct bare *b, const struct bare_instruction *i)
{
	return &b->blocks[b->instructions[i->target].block];
}

struct bare_block *bare_root(const struct bare *b, struct bare_block *block)
{
	while (&b->blocks[block->parent] != block) {
		block->parent = b->blocks[block->parent].parent;
		block = &b->blocks[block->parent];
	}
	return block;
}

void bare_refuse(const struct bare *b, struct bare_block *block)
{
	bare_root(b, block)->is_refused = true;
}

void bare_join(const struct bare *b, struct bare_block *one, struct bare_block *other)
{
	struct bare_block *root = bare_root(b, one), *joined = bare_root(b, other);

	if (root == joined)
		return;
	joined->parent = (uint32_t)(root - b->blocks);
	root->is_refused |= joined->is_refused;
}

const struct bare_instruction *bare_last(const struct bare *b, const struct bare_block *block)
{
	return &b->instructions[block->end - 1];
}

struct bare_block *bare_next(const struct bare *b, struct bare_block *block)
{
	if (bare_ends(b, block->end - 1) || block + 1 == b->blocks + b->block_count)
		return NULL;
	return block + 1;
}

bool bare_is_beginning(const struct bare *b, uint32_t number)
{
	const uint32_t first = b->blocks[b->instructions[number].block].first;

	return bare_skip_padding(b, first, number) == number;
}

static bool bare_has_only_nops(const struct bare *b, const struct bare_block *block)
{
	for (uint32_t i = block->first; i < block->end; i++)
		if (b->instructions[i].kind != CODE_NOP || !b->instructions[i].is_code)
			return false;
	return true;
}

static void bare_note_addresses(const struct bare *b)
{
	for (size_t i = 0; i < b->instruction_count; i++) {
		const struct bare_instruction *at = &b->instructions[i];

		if (at->kind == CODE_CALL && at->target < b->instruction_count)
			bare_block_of_target(b, at)->is_called = true;
		if (at->place < b->instruction_count) {
			struct bare_block *to = &b->blocks[b->instructions[at->place].block];

			to->is_pointed_to |= bare_is_beginning(b, at->place);
		}
	}
}

/* A jump to what is also called is a tail call, or a loop: the target has its own frame. */
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
		if (at->kind == CODE_CALL)
			continue;
		to->is_jumped_to = true;
		if (!to->is_called)
			bare_join(b, block, to);
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

bool bare_is_entry(const struct bare_block *block)
{
	return block->is_called ||
	       (!block->is_fallen_into && !block->is_jumped_to && !block->is_padding);
}

void bare_connect(const struct bare *b)
{
	bare_note_addresses(b);
	for (size_t i = 0; i < b->block_count; i++)
		bare_note_targets(b, &b->blocks[i]);
	for (size_t i = 0; i < b->block_count; i++)
		bare_note_order(b, &b->blocks[i]);
}

/* ---- states --------------------------------------------------------------------------------- */

void bare_run(const struct bare *b, struct bare_state *s, const struct bare_instruction *i)
{
	bare_state_run(s, i->kind, &i->effect);
	if (i->kind != CODE_CALL)
		return;
	if (i->target < b->instruction_count && bare_root(b, bare_block_of_target(b, i))->loses_fp)
		bare_state_lose_fp(s);
	if (i->is_doubtful)
		s->doubt = (uint32_t)(i - b->instructions) + 1;
}

bool bare_is_above(const struct bare_state *s)
{
	return !s->is_realigned && s->sp > s->machine->entry;
}

/* The registers that E reads as addresses or numbers: what is only saved says nothing. */
static uint32_t bare_reads(const struct code_effect *e)
{
	switch (e->kind) {
	case CODE_EFFECT_COPY:
		return bare_bit(e->from);
	case CODE_EFFECT_ADD:
	case CODE_EFFECT_SUBTRACT:
		return bare_bit(e->from) | bare_bit(e->second);
	case CODE_EFFECT_LOAD:
	case CODE_EFFECT_STORE:
		return bare_bit(e->base);
	default:
		return 0;
	}
}

static uint32_t bare_written(const struct code_effect *e)
{
	const uint32_t second = e->kind == CODE_EFFECT_LOAD ? bare_bit(e->second) : 0;

	return e->writes | second | (e->kind == CODE_EFFECT_STORE ? 0 : bare_bit(e->to));
}

/*
 * Whether a function may begin with instruction NUMBER: it would not pop what it has not pushed,
 * nor use what registers have that belong to its caller.
 */
static bool bare_may_begin(const struct bare *b, uint32_t number)
{
	struct bare_state state = bare_state_at_entry(b->machine);
	const uint32_t end = (uint32_t)MIN(b->instruction_count, (size_t)number + BARE_BEGINNING);
	uint32_t callers = b->machine->kept;

	for (uint32_t i = number; i < end && (i == number || !bare_ends(b, i - 1)); i++) {
		const struct bare_instruction *at = &b->instructions[i];

		bare_run(b, &state, at);
		if (bare_is_above(&state) || bare_reads(&at->effect) & callers)
			return false;
		callers &= ~bare_written(&at->effect);
	}
	return true;
}

bool bare_may_be_next(const struct bare *b, uint32_t number)
{
	return !((b->low + bare_off(b, number)) % b->align) && bare_may_begin(b, number);
}

/* Of the gap's functions: compilers that optimize for size do not align them. */
static uint8_t bare_alignment(const struct bare *b)
{
	size_t aligned = 0, others = 0;

	for (size_t i = 0; i < b->block_count; i++) {
		const struct bare_block *block = &b->blocks[i];

		if (block->is_called && bare_is_aligned(b, block->first))
			aligned++;
		else if (block->is_called)
			others++;
	}
	return others > aligned ? 1 : b->machine->align;
}

void bare_note_doubtful_calls(struct bare *b)
{
	b->align = bare_alignment(b);
	for (uint32_t i = 0; i < b->instruction_count; i++) {
		struct bare_instruction *at = &b->instructions[i];

		at->is_doubtful = at->kind == CODE_CALL &&
				  (at->target >= b->instruction_count || at->is_unsure) &&
				  bare_may_be_next(b, i + 1);
	}
}
