/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_asked.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/dwarf/dwarf_die.h"
#include "symbolizer/indexer/dwarf/dwarf_ranges.h"

enum {
	ARANGES_VERSION = 2,
	LENGTH_64BIT = 0xffffffff,
	TUPLE_BYTES = 16, /* an address and a length */
	SET_STEPS = 64, /* of work */
};

enum unit_state { UNIT_NOT_LISTED, UNIT_UNASKED, UNIT_ASKED };

struct asked {
	struct dwarf *d;
	struct index_writer *w;
	uint8_t *states; /* enum unit_state, one for each unit */
	const uint64_t *addresses;
	size_t address_count;
	bool *listed; /* by address: some unit has it, says .debug_aranges */
};

/* Notes which addresses are in [LOW, HIGH). */
static void note_listed(struct asked *a, uint64_t low, uint64_t high)
{
	for (size_t i = writer_first_asked(a->w, low);
		i < a->address_count && a->addresses[i] < high; i++)
		a->listed[i] = true;
}

/*
 * Reads the tuples of one set (DWARF 5, 6.1.2), to its end: zeros may be the terminator, or a
 * discarded function without code.
 */
static enum unit_state tuples_state(struct asked *a, struct cursor *c)
{
	enum unit_state state = UNIT_NOT_LISTED;

	while (cursor_left(c) >= TUPLE_BYTES) {
		uint64_t low = cursor_u64(c), size = cursor_u64(c), high;

		if (!work_spend(a->d->work, TUPLE_BYTES))
			return UNIT_NOT_LISTED;
		if (!size || __builtin_add_overflow(low, size, &high))
			continue;
		state = MAX(state, UNIT_UNASKED);
		if (!writer_is_asked(a->w, low, high))
			continue;
		state = UNIT_ASKED;
		note_listed(a, low, high);
	}
	return state;
}

/* Reads the set at C, with one unit's addresses, and skips it; false if nothing can follow. */
static bool read_set(struct asked *a, struct cursor *c)
{
	const uint64_t start = cursor_offset(c);
	uint64_t length = cursor_u32(c), offset;
	unsigned int offset_size = 4, address_size, segment_size;
	struct dwarf_unit *u;
	struct cursor set;
	enum unit_state state;
	uint8_t *known;

	if (length == LENGTH_64BIT) {
		offset_size = 8;
		length = cursor_u64(c);
	}
	set = *c;
	if (!cursor_skip(c, length) || !length || !work_spend(a->d->work, SET_STEPS))
		return false;
	set.end = c->at;
	if (cursor_u16(&set) != ARANGES_VERSION)
		return true;
	offset = cursor_unsigned(&set, offset_size);
	address_size = cursor_u8(&set);
	segment_size = cursor_u8(&set);
	/* The tuples are aligned, counted from the start of the set. */
	cursor_skip(&set, -(cursor_offset(&set) - start) % TUPLE_BYTES);
	u = dwarf_unit_at(a->d, offset);
	if (set.bad || address_size != 8 || segment_size || !u || u->format.base != offset)
		return true;
	state = tuples_state(a, &set);
	known = &a->states[u - a->d->units];
	*known = MAX(*known, (uint8_t)state);
	return true;
}

/* Whether each address in code is in some unit that .debug_aranges lists. */
static bool all_are_listed(const struct asked *a)
{
	for (size_t i = 0; i < a->address_count; i++)
		if (!a->listed[i] && dwarf_is_code(a->d, a->addresses[i]))
			return false;
	return true;
}

struct seen {
	struct index_writer *w;
	bool any, asked;
};

static int see_range(void *context, uint64_t low, uint64_t high)
{
	struct seen *seen = context;

	seen->any = true;
	seen->asked |= writer_is_asked(seen->w, low, high);
	return 0;
}

/* Whether U has code that is asked for, or does not say where its code is. */
static int look_into(const struct asked *a, struct dwarf_unit *u, bool *ret_asked)
{
	struct seen seen = { .w = a->w };
	struct dwarf_unit *found;
	struct dwarf_die root;
	int err = dwarf_unit_open(a->d, u);

	if (!err)
		err = dwarf_die_at(a->d, u->root, &root, &found);
	if (!err)
		err = dwarf_ranges_each(a->d, u, &root, see_range, &seen);
	if (err == -ENOMEM)
		return err;
	*ret_asked = err || !seen.any || seen.asked;
	return 0;
}

int dwarf_asked_units(struct dwarf *d, struct index_writer *w, bool **ret_asked)
{
	struct asked a = { .d = d, .w = w };
	autofree uint8_t *states = calloc(d->unit_count + 1, sizeof(*states));
	autofree bool *asked = calloc(d->unit_count + 1, sizeof(*asked));
	autofree bool *listed = NULL;
	struct cursor sets = d->sections.aranges;
	bool is_complete;
	int err = 0;

	a.addresses = writer_asked(w, &a.address_count);
	listed = calloc(a.address_count + 1, sizeof(*listed));
	if (!states || !asked || !listed)
		return -ENOMEM;
	a.states = states;
	a.listed = listed;
	while (cursor_left(&sets) && read_set(&a, &sets))
		;
	is_complete = all_are_listed(&a);
	for (size_t i = 0; i < d->unit_count && !err; i++) {
		asked[i] = states[i] == UNIT_ASKED;
		if (!asked[i] && (states[i] == UNIT_NOT_LISTED || !is_complete))
			err = look_into(&a, &d->units[i], &asked[i]);
	}
	if (!err)
		*ret_asked = take(asked);
	return err;
}
