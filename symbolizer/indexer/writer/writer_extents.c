/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where functions begin and end according to the entries that exceptions are unwound with. A
 * stripped file has them for nearly all of its code. They give code without a symbol the start of
 * its function, and symbols without a size their end.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/writer/writer_state.h"

enum {
	MAX_EXTENTS = 1 << 22,
	FUNCTION_ALIGN = 16, /* used by compilers */
};

static int extents_add(
	struct index_writer *w, struct build_extents *extents, uint64_t low, uint64_t high)
{
	uint32_t offset, end;
	int err = writer_close_code(w);

	if (err)
		return err;
	if (low >= high || !writer_code_offset(w, low, &offset, &end))
		return 0;
	err = array_reserve(extents->items, extents->capacity, extents->count + 1, MAX_EXTENTS);
	if (err)
		return err;
	extents->items[extents->count++] = (struct build_extent){
		.low = offset,
		.high = (uint32_t)MIN(high - w->base, (uint64_t)end),
	};
	return 0;
}

int writer_extent(struct index_writer *w, uint64_t low, uint64_t high)
{
	return extents_add(w, &w->extents, low, high);
}

int writer_code_extent(struct index_writer *w, uint64_t low, uint64_t high)
{
	return extents_add(w, &w->code_extents, low, high);
}

static int extent_by_low(const void *a, const void *b)
{
	const struct build_extent *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->high < y->high ? -1 : x->high > y->high;
}

void writer_extents_sort(struct index_writer *w)
{
	const struct build_extents *extents = &w->extents;

	for (size_t i = 1; i < extents->count; i++)
		if (extent_by_low(&extents->items[i - 1], &extents->items[i]) > 0) {
			qsort(extents->items, extents->count, sizeof(*extents->items),
				extent_by_low);
			return;
		}
}

/* Returns the number of extents that start at or below OFFSET. */
static size_t extents_upto(const struct index_writer *w, uint32_t offset)
{
	size_t low = 0, high = w->extents.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->extents.items[middle].low <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * A signal handler returns to the first byte of a function such as glibc's __restore_rt. Unwinders
 * look up a return address one byte earlier, where the call was, so the function's entry starts a
 * byte before the function, and its name must be found there, too.
 */
uint32_t writer_extent_begin(const struct index_writer *w, const struct build_symbol *symbol)
{
	size_t next = extents_upto(w, symbol->low);

	return next && w->extents.items[next - 1].low + 1 == symbol->low ? symbol->low - 1
									 : symbol->low;
}

uint32_t writer_extent_end(const struct index_writer *w, const struct build_symbol *symbol)
{
	size_t next = extents_upto(w, symbol->low);
	uint32_t end = symbol->limit;

	const struct build_extent *extents = w->extents.items;

	if (next < w->extents.count)
		end = MIN(end, extents[next].low);
	if (next && extents[next - 1].high > symbol->low)
		return MIN(end, extents[next - 1].high);
	/* Of the labels of a stripped file only those that others use are left. */
	return symbol->is_label ? symbol->low : end;
}

/* Padding before the next function counts as part of this one: that saves a span for each. */
static uint32_t extent_padded_end(
	const struct index_writer *w, const struct build_extents *extents, size_t number)
{
	const struct build_extent *extent = &extents->items[number];
	uint32_t next = number + 1 < extents->count ? extent[1].low : extent->high;

	if (next > extent->high && next - extent->high < FUNCTION_ALIGN &&
		!((w->base + next) % FUNCTION_ALIGN))
		return next;
	return extent->high;
}

static void extents_add_ranges(
	struct index_writer *w, const struct build_extents *extents, uint32_t first_id)
{
	for (size_t i = 0; i < extents->count; i++)
		w->ranges[w->range_count++] = (struct interval){
			.low = extents->items[i].low,
			.high = extent_padded_end(w, extents, i),
			.id = first_id + (uint32_t)i,
		};
}

/* The entries come last: where both have code, they have it. */
int writer_extents_add_ranges(struct index_writer *w, uint32_t first_id)
{
	size_t ranges = w->range_count + w->code_extents.count + w->extents.count;
	int err = array_reserve(w->ranges, w->range_capacity, ranges, SIZE_MAX / 16);

	if (err)
		return err;
	extents_add_ranges(w, &w->code_extents, first_id);
	extents_add_ranges(w, &w->extents, first_id + (uint32_t)w->code_extents.count);
	return 0;
}

/*
 * The span's content. An extent whose first bytes belong to a named function is that function's:
 * the rest of it, behind the end of the symbol, does not get another name.
 */
static uint32_t extent_settle(struct index_writer *w, const struct span *span, uint32_t first_id)
{
	struct build_extent *extent;
	uint32_t distance, number = span->id - first_id;

	if (span->id == UINT32_MAX || span->id < first_id)
		return span->id;
	extent = number < w->code_extents.count ? &w->code_extents.items[number]
						: &w->extents.items[number - w->code_extents.count];
	distance = span->address - extent->low;
	extent->is_nameless |= !distance;
	if (!extent->is_nameless || distance >= INDEX_NO_NODE - INDEX_NAMELESS)
		return UINT32_MAX;
	return INDEX_NAMELESS + distance;
}

void writer_extents_settle(struct index_writer *w, uint32_t first_id)
{
	struct spans *spans = &w->spans;
	size_t kept = 0;

	for (size_t i = 0; i < spans->count; i++) {
		struct span span = spans->items[i];

		span.id = extent_settle(w, &span, first_id);
		if (kept && span.id == UINT32_MAX && spans->items[kept - 1].id == UINT32_MAX)
			continue;
		spans->items[kept++] = span;
	}
	spans->count = kept;
}

void writer_extents_free(struct index_writer *w)
{
	free(w->extents.items);
	free(w->code_extents.items);
	w->extents = w->code_extents = (struct build_extents){ 0 };
}
