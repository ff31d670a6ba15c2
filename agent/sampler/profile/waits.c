/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/waits.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "bpf/abi/sampler.h"

/*
 * BPF knows of ABI_WAITS at most. Beside them there are some whose end was lost, and those that
 * have ended while their stack is not there yet.
 */
enum { MAX_WAITS = 4 * ABI_WAITS };

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
static int waits_free_item(struct waits *w, uint64_t *ret_number)
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

/* The newest wait of TID; NULL: none is known. */
static struct wait *waits_newest(struct waits *w, uint32_t tid)
{
	uint64_t number;

	return map_get(&w->by_tid, tid, &number) ? &w->items[number] : NULL;
}

static struct wait *waits_older(struct waits *w, const struct wait *wait)
{
	return wait->older ? &w->items[wait->older - 1] : NULL;
}

int waits_begin(struct waits *w, uint32_t tid, uint64_t left_ns)
{
	const struct wait *newest;
	uint32_t older;
	uint64_t number;
	int err;

	waits_forget_thread(w, tid);
	newest = waits_newest(w, tid);
	older = newest ? (uint32_t)(newest - w->items) + 1 : 0;
	err = waits_free_item(w, &number);
	if (!err)
		err = map_set(&w->by_tid, tid, number);
	if (err)
		return err;
	if (number == w->count)
		w->count++;
	else
		w->free_count--;
	w->items[number] = (struct wait){
		.state = WAIT_BEGUN,
		.tid = tid,
		.older = older,
		.left_ns = left_ns,
	};
	return 0;
}

struct wait *waits_find(struct waits *w, uint32_t tid, uint64_t left_ns)
{
	struct wait *wait = waits_newest(w, tid);

	while (wait && wait->left_ns != left_ns)
		wait = waits_older(w, wait);
	return wait;
}

/* Takes WAIT out of the chain of its thread. */
static void waits_unlink(struct waits *w, const struct wait *wait)
{
	uint32_t number = (uint32_t)(wait - w->items) + 1;
	struct wait *newer = waits_newest(w, wait->tid);

	assert(newer);
	if (newer == wait) {
		map_remove(&w->by_tid, wait->tid);
		/* Needs no memory: there is room for as many as before. */
		if (wait->older)
			(void)map_set(&w->by_tid, wait->tid, wait->older - 1);
		return;
	}
	while (newer->older != number)
		newer = waits_older(w, newer);
	newer->older = wait->older;
}

void waits_forget(struct waits *w, struct wait *wait)
{
	assert(wait->state != WAIT_FREE);
	waits_unlink(w, wait);
	wait->state = WAIT_FREE;
	w->free[w->free_count++] = (uint32_t)(wait - w->items);
}

void waits_forget_thread(struct waits *w, uint32_t tid)
{
	struct wait *newest = waits_newest(w, tid);

	/* Those that have ended are still to be counted. */
	if (newest && newest->state != WAIT_ENDED)
		waits_forget(w, newest);
}

struct wait *waits_next(struct waits *w, size_t *iterator)
{
	while (*iterator < w->count) {
		struct wait *wait = &w->items[(*iterator)++];

		if (wait->state != WAIT_FREE)
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
