/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/latency/latency_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/latency/latency_exposition.h"
#include "base/array.h"
#include "base/intern.h"

/*
 * Bounds from 255 ns to 68.7 s, 29 of them: each is a series of its own in Prometheus. A probe
 * takes longer than the shortest.
 */
enum { FIRST_ROW = 7, LAST_ROW = 35 };

/* A million histograms would be more than a scrape can have. */
enum { MAX_SERIES = 1 << 20 };

void latency_series_init(struct latency_series_set *set, size_t limit)
{
	*set = (struct latency_series_set){ .limit = limit };
	map_init(&set->by_labels, MAX_SERIES);
}

void latency_series_deinit(struct latency_series_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		free(set->items[i].labels);
	free(set->items);
	map_deinit(&set->by_labels);
	*set = (struct latency_series_set){ 0 };
}

void latency_series_set_limit(struct latency_series_set *set, size_t limit)
{
	set->limit = limit;
}

static int latency_series_append(struct latency_series_set *set, const void *labels,
	size_t labels_size, uint64_t hash, uint64_t group)
{
	char *copy;
	bool full = set->count >= set->limit ||
		    set->labels_bytes + labels_size > set->limit * LATENCY_SERIES_LABEL_BYTES;
	int err = full ? -E2BIG : 0;

	if (!err)
		err = array_reserve(set->items, set->capacity, set->count + 1, MAX_SERIES);
	if (err)
		return err;
	copy = malloc(labels_size + 1);
	err = copy ? map_set(&set->by_labels, hash, set->count) : -ENOMEM;
	if (err) {
		free(copy);
		return err;
	}
	memcpy(copy, labels, labels_size);
	copy[labels_size] = 0;
	set->items[set->count++] = (struct latency_series){
		.labels = copy, .labels_size = labels_size, .group = group
	};
	set->labels_bytes += labels_size;
	return 0;
}

int latency_series_find(struct latency_series_set *set, const void *labels, size_t labels_size,
	uint64_t group, size_t *ret_place)
{
	uint64_t hash = hash_bytes(labels, labels_size), place = set->count;
	int err = 0;

	if (!map_get(&set->by_labels, hash, &place))
		err = latency_series_append(set, labels, labels_size, hash, group);
	else if (set->items[place].labels_size != labels_size ||
		 memcmp(set->items[place].labels, labels, labels_size) != 0)
		err = -E2BIG; /* a collision: no room for the second one */
	if (!err)
		*ret_place = place;
	return err;
}

void latency_series_add(
	struct latency_series *series, uint32_t bucket, uint64_t calls, uint64_t total_ns)
{
	series->rows.calls[latency_row(bucket)] += calls;
	series->total_ns += total_ns;
}

static void latency_series_remove(struct latency_series_set *set, size_t place)
{
	struct latency_series *gone = &set->items[place];
	const struct latency_series *last = &set->items[set->count - 1];

	map_remove(&set->by_labels, hash_bytes(gone->labels, gone->labels_size));
	set->labels_bytes -= gone->labels_size;
	free(gone->labels);
	set->count--;
	if (place == set->count)
		return;
	*gone = *last;
	/* Cannot fail: the key is there, and another one was just removed. */
	(void)map_set(&set->by_labels, hash_bytes(gone->labels, gone->labels_size), place);
}

size_t latency_series_drop(struct latency_series_set *set,
	bool (*is_gone)(void *context, struct latency_series *series), void *context)
{
	size_t before = set->count;

	for (size_t i = set->count; i-- > 0;) {
		if (is_gone(context, &set->items[i]))
			latency_series_remove(set, i);
	}
	return before - set->count;
}

void latency_series_write(const struct latency_series_set *set, struct buffer *out)
{
	if (set->count)
		latency_exposition_head(out);
	for (size_t i = 0; i < set->count; i++) {
		const struct latency_series *series = &set->items[i];
		const struct latency_exposition exposition = {
			.labels = series->labels,
			.labels_size = series->labels_size,
			.rows = &series->rows,
			.total_ns = series->total_ns,
			.first_row = FIRST_ROW,
			.last_row = LAST_ROW,
		};

		latency_exposition_histogram(out, &exposition);
	}
}
