/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_ranges.h"

#include <dwarf.h>
#include <errno.h>

enum {
	MAX_RANGES = 1 << 16, /* per entry */
	RANGE_STEPS = 16, /* of work: several entries may share a list */
};

/* Linkers set addresses of discarded code to -1 or -2 (or 0 or 1, which are outside any code). */
static const uint64_t first_tombstone = UINT64_MAX - 1;

struct list {
	const struct dwarf *d;
	const struct dwarf_unit *u;
	struct cursor c;
	uint64_t base;
	dwarf_range_fn fn;
	void *context;
};

static int dwarf_ranges_emit(const struct list *list, uint64_t low, uint64_t high)
{
	if (low >= high || low >= first_tombstone)
		return 0;
	return list->fn(list->context, low, high);
}

static int emit_pair(const struct list *list, uint64_t low, uint64_t high)
{
	if (list->base >= first_tombstone)
		return 0;
	return dwarf_ranges_emit(list, list->base + low, list->base + high);
}

/* DWARF 4, 2.17.3: pairs of offsets, (-1, address) selects a base, (0, 0) ends. */
static int read_ranges(struct list *list)
{
	for (int i = 0; i < MAX_RANGES; i++) {
		uint64_t low = cursor_u64(&list->c);
		uint64_t high = cursor_u64(&list->c);
		int err = 0;

		if (list->c.bad || !work_spend(list->d->work, RANGE_STEPS))
			return -EBADMSG;
		if (!low && !high)
			return 0;
		if (low == UINT64_MAX)
			list->base = high;
		else
			err = emit_pair(list, low, high);
		if (err)
			return err;
	}
	return -EBADMSG;
}

static uint64_t indexed(struct list *list)
{
	uint64_t address = 0;

	if (!dwarf_indexed_address(list->d, list->u, dwarf_uleb(&list->c), &address))
		list->c.bad = true;
	return address;
}

static int emit_length(struct list *list, uint64_t low)
{
	uint64_t length = dwarf_uleb(&list->c);

	return list->c.bad ? -EBADMSG : dwarf_ranges_emit(list, low, low + length);
}

/* Separate statements, because the operands must be read in order. */
static int emit_start_end(struct list *list, bool by_index)
{
	uint64_t low = by_index ? indexed(list) : cursor_u64(&list->c);
	uint64_t high = by_index ? indexed(list) : cursor_u64(&list->c);

	return list->c.bad ? -EBADMSG : dwarf_ranges_emit(list, low, high);
}

static int emit_offsets(struct list *list)
{
	uint64_t low = dwarf_uleb(&list->c);
	uint64_t high = dwarf_uleb(&list->c);

	return list->c.bad ? -EBADMSG : emit_pair(list, low, high);
}

/* Reads an entry of a range list (DWARF 5, 7.25) after its kind. */
static int dwarf_ranges_read_entry(struct list *list, uint8_t kind)
{
	switch (kind) {
	case DW_RLE_base_addressx:
		list->base = indexed(list);
		return 0;
	case DW_RLE_base_address:
		list->base = cursor_u64(&list->c);
		return 0;
	case DW_RLE_startx_endx:
		return emit_start_end(list, true);
	case DW_RLE_start_end:
		return emit_start_end(list, false);
	case DW_RLE_startx_length:
		return emit_length(list, indexed(list));
	case DW_RLE_start_length:
		return emit_length(list, cursor_u64(&list->c));
	case DW_RLE_offset_pair:
		return emit_offsets(list);
	}
	return -EBADMSG;
}

static int read_rnglist(struct list *list)
{
	for (int i = 0; i < MAX_RANGES; i++) {
		uint8_t kind = cursor_u8(&list->c);
		int err;

		if (list->c.bad || !work_spend(list->d->work, RANGE_STEPS))
			return -EBADMSG;
		if (kind == DW_RLE_end_of_list)
			return 0;
		err = dwarf_ranges_read_entry(list, kind);
		if (err)
			return err;
		if (list->c.bad)
			return -EBADMSG;
	}
	return -EBADMSG;
}

/* DW_FORM_rnglistx: INDEX into the offset table at rnglists_base; offsets are relative to it. */
static void seek_index(struct list *list, uint64_t index)
{
	unsigned int size = list->u->format.offset_size;
	uint64_t base = list->u->rnglists_base;
	uint64_t offset;

	if (index > cursor_left(&list->c) || base > cursor_left(&list->c)) {
		list->c.bad = true;
		return;
	}
	cursor_seek(&list->c, base + index * size);
	offset = cursor_unsigned(&list->c, size);
	if (offset > (uint64_t)(list->c.end - list->c.start))
		list->c.bad = true;
	else
		cursor_seek(&list->c, base + offset);
}

static int read_low_high(struct list *list, const struct dwarf_die *die)
{
	uint64_t low, high;

	if (die->low.kind == DWARF_NONE || die->high.kind == DWARF_NONE)
		return 0;
	if (!dwarf_address(list->d, list->u, &die->low, &low))
		return -EBADMSG;
	if (die->high.kind == DWARF_CONSTANT)
		high = low + die->high.number;
	else if (!dwarf_address(list->d, list->u, &die->high, &high))
		return -EBADMSG;
	return dwarf_ranges_emit(list, low, high);
}

int dwarf_ranges_each(const struct dwarf *d, const struct dwarf_unit *u,
	const struct dwarf_die *die, dwarf_range_fn fn, void *context)
{
	bool new_lists = u->format.version >= 5;
	struct list list = { d, u, new_lists ? d->sections.rnglists : d->sections.ranges, u->low_pc,
		fn, context };

	if (die->ranges.kind == DWARF_NONE)
		return read_low_high(&list, die);
	if (die->ranges.kind == DWARF_LIST_INDEX)
		seek_index(&list, die->ranges.number);
	else
		cursor_seek(&list.c, u->ranges_base + die->ranges.number);
	return new_lists ? read_rnglist(&list) : read_ranges(&list);
}
