/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/index/functions.h"

enum { MAX_PARTS = 4096 };
static const size_t MAX_ITEMS = UINT32_MAX;

void code_body_deinit(struct code_body *b)
{
	free(b->returns);
	free(b->parts);
	free(b->targets);
	free(b->starts);
}

/* ---- instruction starts --------------------------------------------------------------------- */

static void body_set_start(struct code_body *b, const struct code_part *part, uint64_t address)
{
	size_t bit = part->first_bit + (size_t)(address - part->low);

	b->starts[bit / 8] |= (uint8_t)(1 << bit % 8);
}

static bool body_is_start(const struct code_body *b, const struct code_part *part, uint64_t address)
{
	size_t bit = part->first_bit + (size_t)(address - part->low);

	return address >= part->low && address < part->high && b->starts[bit / 8] >> bit % 8 & 1;
}

static const struct code_part *body_part_of(const struct code_body *b, uint64_t address)
{
	for (size_t i = 0; i < b->part_count; i++)
		if (address >= b->parts[i].low && address < b->parts[i].high)
			return &b->parts[i];
	return NULL;
}

/* Adds a part whose bytes are no starts yet. A function with too many of them is not decoded. */
static int body_add_part(struct code_body *b, const struct writer_part *added)
{
	const struct code_part *last = b->part_count ? &b->parts[b->part_count - 1] : NULL;
	size_t first = last ? (last->first_bit + (size_t)(last->high - last->low) + 7) / 8 : 0;
	size_t bytes = (size_t)(added->high - added->low) / 8 + 1;

	if (b->part_count == MAX_PARTS || !work_spend(b->work, added->high - added->low)) {
		b->flags |= INDEX_FUNCTION_UNDECODED;
		return 0;
	}
	if (array_reserve(b->parts, b->part_capacity, b->part_count + 1, MAX_PARTS) ||
		array_reserve(b->starts, b->start_capacity, first + bytes, MAX_ITEMS))
		return -ENOMEM;
	memset(b->starts + first, 0, bytes);
	b->parts[b->part_count++] = (struct code_part){
		.low = added->low,
		.high = added->high,
		.first_bit = first * 8,
		.tail = added->high,
	};
	return 0;
}

/* ---- one part after the other --------------------------------------------------------------- */

/* The sweep over a part. */
struct sweep {
	struct code_part *part;
	const uint8_t *bytes;
	bool has_end;
	uint64_t at, furthest; /* the highest target in the part */
	uint64_t called; /* behind the last call; 0 = control may have come from elsewhere since */
	enum code_kind last; /* that is no nop */
};

static bool kind_stops(enum code_kind kind)
{
	return kind == CODE_RETURN || kind == CODE_JUMP || kind == CODE_LEAVE ||
	       kind == CODE_INDIRECT_JUMP || kind == CODE_STOP;
}

static int body_note_return(struct code_body *b, uint64_t address)
{
	if (array_reserve(b->returns, b->return_capacity, b->return_count + 1, MAX_ITEMS))
		return -ENOMEM;
	b->returns[b->return_count++] = address;
	return 0;
}

static int body_note_target(struct code_body *b, struct sweep *s, uint64_t target)
{
	if (array_reserve(b->targets, b->target_capacity, b->target_count + 1, MAX_ITEMS))
		return -ENOMEM;
	b->targets[b->target_count++] = target;
	if (target < s->part->high)
		s->furthest = MAX(s->furthest, target);
	return 0;
}

/* A call, then a jump to the entry; between them only what restores registers. */
static void body_note_restart(
	struct code_body *b, struct sweep *s, const struct code_instruction *i)
{
	if (i->kind == CODE_PLAIN || i->kind == CODE_NOP)
		return;
	if (i->kind == CODE_JUMP && s->called && i->target == b->parts[0].low)
		b->restart = b->restart_count++ ? 0 : s->called;
	s->called = i->kind == CODE_CALL ? s->at + i->size : 0;
}

static int body_note(struct code_body *b, struct sweep *s, const struct code_instruction *i)
{
	body_note_restart(b, s, i);
	if (i->is_misread && s->at == b->parts[0].low)
		b->flags |= INDEX_FUNCTION_ENTRY_MISREAD;
	switch (i->kind) {
	case CODE_RETURN:
		if (s->at == b->parts[0].low)
			b->flags |= INDEX_FUNCTION_ENTRY_IS_RETURN;
		return body_note_return(b, s->at);
	case CODE_JUMP:
	case CODE_BRANCH:
		return body_note_target(b, s, i->target);
	case CODE_LEAVE:
		b->flags |= INDEX_FUNCTION_TAIL_JUMP;
		return 0;
	case CODE_INDIRECT_JUMP:
		b->flags |= INDEX_FUNCTION_INDIRECT_JUMP;
		return 0;
	default:
		return 0;
	}
}

/*
 * Without a known end, the part ends where control leaves it for good. Behind an indirect jump
 * there may be the cases of a switch, so there the end stays unknown.
 */
static bool sweep_ends(struct code_body *b, struct sweep *s, enum code_kind kind)
{
	if (s->has_end || !kind_stops(kind) || s->at <= s->furthest)
		return false;
	if (kind == CODE_INDIRECT_JUMP)
		b->flags |= INDEX_FUNCTION_UNDECODED;
	s->part->high = s->at;
	s->part->tail = s->at;
	return true;
}

static int body_sweep_instructions(struct code_body *b, struct sweep *s)
{
	struct code_instruction i;
	int err;

	while (s->at < s->part->high) {
		if (!code_decode(b->decoder, s->bytes + (s->at - s->part->low),
			    (size_t)(s->part->high - s->at), s->at, &i)) {
			b->flags |= INDEX_FUNCTION_UNDECODED;
			return 0;
		}
		body_set_start(b, s->part, s->at);
		err = body_note(b, s, &i);
		if (err)
			return err;
		s->at += i.size;
		if (i.kind != CODE_NOP)
			s->last = i.kind;
		if (kind_stops(i.kind))
			s->part->tail = s->at;
		if (sweep_ends(b, s, i.kind))
			break;
	}
	return 0;
}

/* A part that ends with a call ends there, too: the callee does not return. */
static int body_sweep(struct code_body *b, size_t number, bool has_end)
{
	struct code_part *part = &b->parts[number];
	struct cursor bytes = elf_image_at(b->image, part->low, part->high - part->low);
	struct sweep s = {
		.part = part,
		.bytes = bytes.at,
		.has_end = has_end,
		.at = part->low,
		.last = CODE_STOP,
	};
	int err;

	if (bytes.bad) {
		b->flags |= INDEX_FUNCTION_UNDECODED;
		return 0;
	}
	part->tail = part->low;
	err = body_sweep_instructions(b, &s);
	if (s.last != CODE_PLAIN && s.last != CODE_BRANCH)
		part->tail = part->high;
	return err;
}

static int body_sweep_added(struct code_body *b, const struct writer_part *added, bool has_end)
{
	size_t before = b->part_count;
	int err = body_add_part(b, added);

	return err || b->part_count == before ? err : body_sweep(b, before, has_end);
}

/* ---- jumps ---------------------------------------------------------------------------------- */

/* Whether TARGET is an instruction's start, or skips an instruction's prefix. */
static bool body_may_jump(const struct code_body *b, const struct code_part *part, uint64_t target)
{
	struct cursor prefix;

	if (body_is_start(b, part, target))
		return true;
	if (target == part->low || !body_is_start(b, part, target - 1))
		return false;
	prefix = elf_image_at(b->image, target - 1, 1);
	return !prefix.bad && code_is_skippable(b->decoder, *prefix.at);
}

static int body_check_target(struct code_body *b, uint64_t target)
{
	const struct code_part *part;
	struct writer_part moved;
	int err;

	if (!work_spend(b->work, b->part_count)) {
		b->flags |= INDEX_FUNCTION_UNDECODED;
		return 0;
	}
	part = body_part_of(b, target);
	if (!part && b->bodies && writer_bodies_cold(b->bodies, target, &moved)) {
		err = body_sweep_added(b, &moved, true);
		if (err)
			return err;
		part = body_part_of(b, target);
	}
	if (!part)
		b->flags |= INDEX_FUNCTION_TAIL_JUMP;
	else if (!body_may_jump(b, part, target))
		b->flags |= INDEX_FUNCTION_UNDECODED;
	return 0;
}

/* Jumps in parts that are added meanwhile are at the end of the list. */
static int body_check_targets(struct code_body *b)
{
	int err = 0;

	for (size_t i = 0; i < b->target_count && !err; i++)
		err = body_check_target(b, b->targets[i]);
	return err;
}

/* Whether control reaches the end of PART and goes on there. */
static bool body_runs_on(const struct code_body *b, const struct code_part *part)
{
	if (part->tail == part->high || body_part_of(b, part->high))
		return false;
	if (part->tail == part->low)
		return true;
	for (size_t i = 0; i < b->target_count; i++)
		if (b->targets[i] >= part->tail && b->targets[i] < part->high)
			return true;
	return false;
}

static int address_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Parts may overlap, in forged debug information. */
static void body_order_returns(struct code_body *b)
{
	size_t count = 0;

	qsort(b->returns, b->return_count, sizeof(*b->returns), address_compare);
	for (size_t i = 0; i < b->return_count; i++)
		if (!count || b->returns[i] != b->returns[count - 1])
			b->returns[count++] = b->returns[i];
	b->return_count = count;
}

static void body_conclude(struct code_body *b)
{
	for (size_t i = 0; i < b->part_count; i++)
		if (work_spend(b->work, b->target_count) && body_runs_on(b, &b->parts[i]))
			b->flags |= INDEX_FUNCTION_TAIL_JUMP;
	if (b->flags & INDEX_FUNCTION_UNDECODED) {
		b->flags &= ~(uint32_t)INDEX_FUNCTION_ENTRY_IS_RETURN;
		b->return_count = 0;
	} else if (!b->return_count) {
		b->flags |= INDEX_FUNCTION_NO_RETURN;
	}
	if (b->return_count && b->part_count > 1)
		body_order_returns(b);
}

int code_body_decode(struct code_body *b, const struct writer_body *function)
{
	int err = 0;

	b->flags = 0;
	b->return_count = b->target_count = b->part_count = b->restart_count = 0;
	b->restart = 0;
	for (size_t i = 0; i < function->part_count && !err; i++)
		err = body_sweep_added(b, &function->parts[i], function->has_end);
	if (!err)
		err = body_check_targets(b);
	if (!err)
		body_conclude(b);
	return err;
}
