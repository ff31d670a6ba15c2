/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/unwind/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { MAX_RUNS = 1 << 20 };

static int runs_insert(struct space_runs *r, size_t at, struct space_run run)
{
	int err = array_reserve(r->items, r->capacity, r->count + 1, MAX_RUNS);

	if (err)
		return err;
	memmove(&r->items[at + 1], &r->items[at], (r->count - at) * sizeof(run));
	r->items[at] = run;
	r->count++;
	return 0;
}

static void runs_remove(struct space_runs *r, size_t at)
{
	r->count--;
	memmove(&r->items[at], &r->items[at + 1], (r->count - at) * sizeof(r->items[0]));
}

int space_init(struct space *s, uint32_t first, uint32_t count)
{
	*s = (struct space){ .total = count };
	return runs_insert(&s->free, 0, (struct space_run){ first, count });
}

void space_deinit(struct space *s)
{
	free(s->free.items);
	free(s->resting.items);
	free(s->rested.items);
	*s = (struct space){ 0 };
}

int space_take(struct space *s, uint32_t count, uint32_t *ret_first)
{
	for (size_t i = 0; i < s->free.count; i++) {
		struct space_run *run = &s->free.items[i];

		if (run->count < count)
			continue;
		*ret_first = run->first;
		run->first += count;
		run->count -= count;
		if (!run->count)
			runs_remove(&s->free, i);
		s->taken += count;
		return 0;
	}
	return -EAGAIN;
}

int space_give(struct space *s, uint32_t first, uint32_t count)
{
	return runs_insert(&s->resting, s->resting.count, (struct space_run){ first, count });
}

static size_t first_free_after(const struct space *s, uint32_t unit)
{
	size_t low = 0, high = s->free.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->free.items[middle].first > unit)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Adds RUN to the free runs and merges it with adjacent ones. */
static int set_free(struct space *s, struct space_run run)
{
	size_t at = first_free_after(s, run.first);
	struct space_run *before = at > 0 ? &s->free.items[at - 1] : NULL;
	struct space_run *after = at < s->free.count ? &s->free.items[at] : NULL;

	if (after && run.first + run.count != after->first)
		after = NULL;
	if (before && before->first + before->count == run.first) {
		before->count += run.count + (after ? after->count : 0);
		if (after)
			runs_remove(&s->free, at);
		return 0;
	}
	if (!after)
		return runs_insert(&s->free, at, run);
	after->first = run.first;
	after->count += run.count;
	return 0;
}

void space_tick(struct space *s)
{
	struct space_runs empty = s->rested;

	for (size_t i = 0; i < s->rested.count; i++) {
		/* If there is no memory for it the run is lost. */
		if (!set_free(s, s->rested.items[i]))
			s->taken -= s->rested.items[i].count;
	}
	empty.count = 0;
	s->rested = s->resting;
	s->resting = empty;
}

uint32_t space_left(const struct space *s)
{
	uint32_t left = s->total - s->taken;

	for (size_t i = 0; i < s->resting.count; i++)
		left += s->resting.items[i].count;
	for (size_t i = 0; i < s->rested.count; i++)
		left += s->rested.items[i].count;
	return left;
}
