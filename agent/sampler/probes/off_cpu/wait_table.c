/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/off_cpu/wait_table.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "bpf/abi/sampler.h"

/*
 * BPF tracks at most ABI_WAITS. In addition there are waits whose end was lost, and ended ones
 * whose stack is not there yet.
 */
enum { MAX_WAITS = 4 * ABI_WAITS };

void wait_table_init(struct wait_table *t, double share)
{
	*t = (struct wait_table){ .scale = 1 / share };
	map_init(&t->by_tid, MAX_WAITS);
}

void wait_table_deinit(struct wait_table *t)
{
	map_deinit(&t->by_tid);
	free(t->items);
	free(t->free);
}

/* Sets *RET_NUMBER to a free item. */
static int wait_table_free_item(struct wait_table *t, uint64_t *ret_number)
{
	int err;

	if (t->free_count) {
		*ret_number = t->free[t->free_count - 1];
		return 0;
	}
	err = array_reserve(t->items, t->capacity, t->count + 1, MAX_WAITS);
	/* Reserved now, so that forgetting a wait never needs memory. */
	if (!err)
		err = array_reserve(t->free, t->free_capacity, t->count + 1, MAX_WAITS);
	if (!err)
		*ret_number = t->count;
	return err;
}

/* The newest wait of TID, NULL if none is known. */
static struct wait *wait_table_newest(struct wait_table *t, uint32_t tid)
{
	uint64_t number;

	return map_get(&t->by_tid, tid, &number) ? &t->items[number] : NULL;
}

static struct wait *wait_table_older(struct wait_table *t, const struct wait *wait)
{
	return wait->older ? &t->items[wait->older - 1] : NULL;
}

int wait_table_begin(struct wait_table *t, uint32_t tid, uint64_t left_ns)
{
	const struct wait *newest;
	uint32_t older;
	uint64_t number;
	int err;

	wait_table_forget_thread(t, tid);
	newest = wait_table_newest(t, tid);
	older = newest ? (uint32_t)(newest - t->items) + 1 : 0;
	err = wait_table_free_item(t, &number);
	if (!err)
		err = map_set(&t->by_tid, tid, number);
	if (err)
		return err;
	if (number == t->count)
		t->count++;
	else
		t->free_count--;
	t->items[number] = (struct wait){
		.state = WAIT_BEGUN,
		.tid = tid,
		.older = older,
		.left_ns = left_ns,
	};
	return 0;
}

struct wait *wait_table_find(struct wait_table *t, uint32_t tid, uint64_t left_ns)
{
	struct wait *wait = wait_table_newest(t, tid);

	while (wait && wait->left_ns != left_ns)
		wait = wait_table_older(t, wait);
	return wait;
}

/* Removes WAIT from its thread's chain. */
static void wait_table_unlink(struct wait_table *t, const struct wait *wait)
{
	uint32_t number = (uint32_t)(wait - t->items) + 1;
	struct wait *newer = wait_table_newest(t, wait->tid);

	assert(newer);
	if (newer == wait) {
		map_remove(&t->by_tid, wait->tid);
		/* Needs no memory: an entry was just removed. */
		if (wait->older)
			(void)map_set(&t->by_tid, wait->tid, wait->older - 1);
		return;
	}
	while (newer->older != number)
		newer = wait_table_older(t, newer);
	newer->older = wait->older;
}

void wait_table_forget(struct wait_table *t, struct wait *wait)
{
	assert(wait->state != WAIT_FREE);
	wait_table_unlink(t, wait);
	wait->state = WAIT_FREE;
	t->free[t->free_count++] = (uint32_t)(wait - t->items);
}

void wait_table_forget_thread(struct wait_table *t, uint32_t tid)
{
	struct wait *newest = wait_table_newest(t, tid);

	/* Ended waits still have to be counted. */
	if (newest && newest->state != WAIT_ENDED)
		wait_table_forget(t, newest);
}

struct wait *wait_table_next(struct wait_table *t, size_t *iterator)
{
	while (*iterator < t->count) {
		struct wait *wait = &t->items[(*iterator)++];

		if (wait->state != WAIT_FREE)
			return wait;
	}
	return NULL;
}

void wait_table_weigh(
	struct wait_table *t, uint64_t wait_ns, uint64_t *ret_count, uint64_t *ret_weight)
{
	t->counted_rest += t->scale;
	*ret_count = (uint64_t)t->counted_rest;
	t->counted_rest -= (double)*ret_count;
	*ret_weight = t->scale > 1 ? (uint64_t)((double)wait_ns * t->scale) : wait_ns;
}
