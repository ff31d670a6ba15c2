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
};

enum unit_state { UNIT_NOT_LISTED, UNIT_UNASKED, UNIT_ASKED };

struct asked {
	struct dwarf *d;
	struct index_writer *w;
	uint8_t *states; /* enum unit_state, one for each unit */
};

/* Reads the pairs of one set (DWARF 5, 6.1.2). */
static enum unit_state pairs_state(struct asked *a, struct cursor *c)
{
	enum unit_state state = UNIT_NOT_LISTED;

	while (cursor_left(c) >= TUPLE_BYTES && work_spend(a->d->work, TUPLE_BYTES)) {
		uint64_t low = cursor_u64(c), size = cursor_u64(c), high;

		if (!low && !size)
			break;
		if (!__builtin_add_overflow(low, size, &high) && writer_is_asked(a->w, low, high))
			return UNIT_ASKED;
		state = UNIT_UNASKED;
	}
	return state;
}

/* Reads the set at C, with one unit's addresses, and skips it; false if it has no end. */
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
	if (!cursor_skip(c, length) || !length)
		return false;
	set.end = c->at;
	if (cursor_u16(&set) != ARANGES_VERSION)
		return true;
	offset = cursor_unsigned(&set, offset_size);
	address_size = cursor_u8(&set);
	segment_size = cursor_u8(&set);
	/* The pairs are aligned, counted from the start of the set. */
	cursor_skip(&set, -(cursor_offset(&set) - start) % TUPLE_BYTES);
	u = dwarf_unit_at(a->d, offset);
	if (set.bad || address_size != 8 || segment_size || !u || u->format.base != offset)
		return true;
	state = pairs_state(a, &set);
	known = &a->states[u - a->d->units];
	*known = MAX(*known, (uint8_t)state);
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
	autofree uint8_t *states = calloc(d->unit_count + 1, sizeof(*states));
	autofree bool *asked = calloc(d->unit_count + 1, sizeof(*asked));
	struct asked a = { .d = d, .w = w, .states = states };
	struct cursor sets = d->sections.aranges;
	int err = 0;

	if (!states || !asked)
		return -ENOMEM;
	while (cursor_left(&sets) && read_set(&a, &sets))
		;
	for (size_t i = 0; i < d->unit_count && !err; i++) {
		asked[i] = states[i] == UNIT_ASKED;
		if (states[i] == UNIT_NOT_LISTED)
			err = look_into(&a, &d->units[i], &asked[i]);
	}
	if (!err)
		*ret_asked = take(asked);
	return err;
}
