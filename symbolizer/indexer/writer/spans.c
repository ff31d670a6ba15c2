/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/writer/spans.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

enum { MAX_SPANS = 1 << 27 };

struct entry {
	uint64_t rank;
	uint32_t id, high;
};

/* Binary heap of started intervals; ended ones are popped once they reach the top. */
struct heap {
	struct entry *entries;
	size_t count, capacity;
};

static bool before(const struct entry *a, const struct entry *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->id < b->id;
}

static int heap_push(struct heap *h, struct entry entry)
{
	int err = array_reserve(h->entries, h->capacity, h->count + 1, MAX_SPANS);
	size_t i = h->count;

	if (err)
		return err;
	h->count++;
	while (i && before(&entry, &h->entries[(i - 1) / 2])) {
		h->entries[i] = h->entries[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	h->entries[i] = entry;
	return 0;
}

static void heap_pop(struct heap *h)
{
	struct entry last = h->entries[--h->count];
	size_t i = 0;

	for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
		if (child + 1 < h->count && before(&h->entries[child + 1], &h->entries[child]))
			child++;
		if (!before(&h->entries[child], &last))
			break;
		h->entries[i] = h->entries[child];
	}
	h->entries[i] = last;
}

static int spans_emit(struct spans *spans, uint32_t address, uint32_t id)
{
	struct span *last = spans->count ? &spans->items[spans->count - 1] : NULL;
	int err;

	if (last && last->id == id)
		return 0;
	err = array_reserve(spans->items, spans->capacity, spans->count + 1, MAX_SPANS);
	if (err)
		return err;
	spans->items[spans->count++] = (struct span){ .address = address, .id = id };
	return 0;
}

static int spans_by_low(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void sort_intervals(struct interval *items, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (items[i - 1].low > items[i].low) {
			qsort(items, count, sizeof(*items), spans_by_low);
			return;
		}
}

/* The heap's entries stay the caller's to free. */
static int spans_sweep(const struct interval *items, size_t count, interval_rank *rank,
	const void *context, struct heap *h, struct spans *spans)
{
	uint32_t at = items[0].low, next;
	size_t i = 0;
	int err = 0;

	while (!err) {
		for (; i < count && items[i].low <= at && !err; i++)
			if (items[i].high > at)
				err = heap_push(h, (struct entry){ rank(context, items[i].id),
							   items[i].id, items[i].high });
		while (h->count && h->entries[0].high <= at)
			heap_pop(h);
		if (!err)
			err = spans_emit(spans, at, h->count ? h->entries[0].id : UINT32_MAX);
		if (!h->count && i == count)
			break;
		next = h->count ? h->entries[0].high : UINT32_MAX;
		at = i < count ? MIN(next, items[i].low) : next;
	}
	return err;
}

int spans_flatten(struct interval *items, size_t count, interval_rank *rank, const void *context,
	struct spans *spans)
{
	struct heap h = { 0 };
	int err;

	if (!count)
		return 0;
	sort_intervals(items, count);
	err = spans_sweep(items, count, rank, context, &h, spans);
	free(h.entries);
	return err;
}

void spans_deinit(struct spans *spans)
{
	free(spans->items);
	*spans = (struct spans){ 0 };
}
