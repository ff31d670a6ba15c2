/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/waits.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "bpf/abi/sampler.h"

/* BPF knows of ABI_WAITS at most; beside them some whose end was lost. */
enum { MAX_WAITS = 2 * ABI_WAITS };

void waits_init(struct waits *w, double share)
{
	*w = (struct waits){ .scale = 1 / share };
	map_init(&w->by_tid, MAX_WAITS);
}

void waits_deinit(struct waits *w)
{
	map_deinit(&w->by_tid);
	free(w->items);
	free(w->free);
}

/* The number of an item that is free. */
static int free_item(struct waits *w, uint64_t *ret_number)
{
	int err;

	if (w->free_count) {
		*ret_number = w->free[w->free_count - 1];
		return 0;
	}
	err = array_reserve(w->items, w->capacity, w->count + 1, MAX_WAITS);
	/* So that to forget one never needs memory. */
	if (!err)
		err = array_reserve(w->free, w->free_capacity, w->count + 1, MAX_WAITS);
	if (!err)
		*ret_number = w->count;
	return err;
}

int waits_begin(struct waits *w, uint32_t tid, uint64_t began_ns)
{
	uint64_t number;
	int err;

	if (!map_get(&w->by_tid, tid, &number)) {
		err = free_item(w, &number);
		if (!err)
			err = map_set(&w->by_tid, tid, number);
		if (err)
			return err;
		if (number == w->count)
			w->count++;
		else
			w->free_count--;
	}
	w->items[number] = (struct wait){ .began_ns = began_ns, .sample.tid = tid };
	return 0;
}

struct wait *waits_find(struct waits *w, uint32_t tid, uint64_t began_ns)
{
	uint64_t number;

	if (!map_get(&w->by_tid, tid, &number) || w->items[number].began_ns != began_ns)
		return NULL;
	return &w->items[number];
}

void waits_forget(struct waits *w, uint32_t tid)
{
	uint64_t number;

	if (!map_get(&w->by_tid, tid, &number))
		return;
	map_remove(&w->by_tid, tid);
	w->items[number].began_ns = 0;
	w->free[w->free_count++] = (uint32_t)number;
}

struct wait *waits_next(struct waits *w, size_t *iterator)
{
	while (*iterator < w->count) {
		struct wait *wait = &w->items[(*iterator)++];

		if (wait->began_ns)
			return wait;
	}
	return NULL;
}

void waits_weigh(struct waits *w, uint64_t wait_ns, uint64_t *ret_count, uint64_t *ret_weight)
{
	w->counted_rest += w->scale;
	*ret_count = (uint64_t)w->counted_rest;
	w->counted_rest -= (double)*ret_count;
	*ret_weight = w->scale > 1 ? (uint64_t)((double)wait_ns * w->scale) : wait_ns;
}
