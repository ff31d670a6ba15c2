/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/latency_probes/deltas.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum { MIN_CAPACITY = 64 };

#define FREE_FUNCTION UINT32_MAX

void deltas_deinit(struct deltas *d)
{
	free(d->items);
	*d = (struct deltas){ 0 };
}

static int deltas_init(struct deltas *d, size_t count)
{
	size_t capacity = MIN_CAPACITY;

	while (capacity < count * 2)
		capacity *= 2;
	d->items = calloc(capacity, sizeof(*d->items));
	if (!d->items)
		return -ENOMEM;
	d->capacity = capacity;
	d->count = 0;
	for (size_t i = 0; i < capacity; i++)
		d->items[i].cell.function = FREE_FUNCTION;
	return 0;
}

/* A mixer of 64 bits (splitmix64). */
static uint64_t deltas_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static bool deltas_same_key(const struct latency_cell *a, const struct latency_cell *b)
{
	return a->function == b->function && a->bucket == b->bucket && a->by == b->by &&
	       a->process == b->process;
}

/* The place of KEY's cell, or the free one where it belongs; NULL without a table. */
static struct delta_cell *deltas_place(const struct deltas *d, const struct latency_cell *key)
{
	uint64_t hash = deltas_mix(((uint64_t)key->function << 32 | key->bucket) ^
				   deltas_mix(key->by ^ ((uint64_t)key->process << 32)));
	size_t i;

	if (!d->capacity)
		return NULL;
	for (i = hash & (d->capacity - 1); d->items[i].cell.function != FREE_FUNCTION;
		i = (i + 1) & (d->capacity - 1))
		if (deltas_same_key(&d->items[i].cell, key))
			break;
	return &d->items[i];
}

static uint64_t deltas_max_of(const struct latency_cell *before, const struct latency_cell *now)
{
	uint64_t last_ns = abi_latency_bucket_start(now->bucket + 1) - 1;

	if (now->max_ns > before->max_ns || now->bucket + 1 >= ABI_LATENCY_BUCKETS)
		return now->max_ns;
	return MIN(now->max_ns, last_ns);
}

static struct delta_cell deltas_step(const struct delta_cell *known, const struct latency_cell *now,
	const struct deltas_reading *reading)
{
	struct delta_cell next = { .cell = *now };
	struct latency_cell delta = *now;

	if (known && known->cell.function != FREE_FUNCTION) {
		/* A sum may arrive after its count, but never without one. */
		if (now->count <= known->cell.count) {
			next = *known;
			next.idle++;
			return next;
		}
		delta.count -= known->cell.count;
		delta.sum_ns -= MIN(known->cell.sum_ns, delta.sum_ns);
		delta.max_ns = deltas_max_of(&known->cell, now);
	}
	reading->added(reading->context, &delta);
	return next;
}

int deltas_read(struct deltas *d, const struct latency_cell *cells, size_t count,
	const struct deltas_reading *reading)
{
	struct deltas next = { 0 };
	int err = deltas_init(&next, count);

	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		struct delta_cell now = deltas_step(deltas_place(d, &cells[i]), &cells[i], reading);
		struct delta_cell *place = deltas_place(&next, &cells[i]);

		if (reading->forget(reading->context, &cells[i], now.idle))
			continue;
		next.count += place->cell.function == FREE_FUNCTION;
		*place = now;
	}
	deltas_deinit(d);
	*d = next;
	return 0;
}
