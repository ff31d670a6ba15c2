/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From intervals that overlap at will to spans that do not: at each address the interval that
 * counts most. One sweep with a heap, so that nested, crossing and unsorted intervals cost alike.
 */
#include <stddef.h>
#include <stdint.h>

struct interval {
	uint32_t low, high; /* [low, high) */
	uint32_t id;
};

struct span {
	uint32_t address; /* up to the next span's */
	uint32_t id; /* UINT32_MAX: none */
};

struct spans {
	struct span *items;
	size_t count, capacity;
};

/* The smaller rank counts more; of equal ranks the smaller id. */
typedef uint64_t interval_rank(const void *context, uint32_t id);

/* Sorts ITEMS and appends their spans to SPANS; the last one's id is none. -ENOMEM, -E2BIG. */
int spans_flatten(struct interval *items, size_t count, interval_rank *rank, const void *context,
	struct spans *spans);
void spans_deinit(struct spans *spans);
