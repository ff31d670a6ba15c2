/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns overlapping intervals into disjoint spans: at each address the interval with the best rank
 * wins. One sweep with a heap, so that nested, crossing and unsorted intervals cost the same.
 */
#include <stddef.h>
#include <stdint.h>

struct interval {
	uint32_t low, high; /* [low, high) */
	uint32_t id;
};

struct span {
	uint32_t address; /* of its start; it ends at the next span */
	uint32_t id; /* UINT32_MAX = no interval */
};

struct spans {
	struct span *items;
	size_t count, capacity;
};

/* The smaller rank wins; of equal ranks the smaller id. */
typedef uint64_t interval_rank(const void *context, uint32_t id);

/*
 * Sorts ITEMS and appends their spans to SPANS; the last span's id is UINT32_MAX. Returns -ENOMEM
 * or -E2BIG.
 */
int spans_flatten(struct interval *items, size_t count, interval_rank *rank, const void *context,
	struct spans *spans);
void spans_deinit(struct spans *spans);
