/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/metadata/container_pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

static bool container_pair_is_valid(const struct container_pair *pair)
{
	size_t length = pair->name ? strlen(pair->name) : 0;

	return length && length <= CONTAINER_KEY_LIMIT && utf8_is_clean(pair->name, length) &&
	       strlen(pair->value ? pair->value : "") <= CONTAINER_VALUE_LIMIT;
}

/* By name; of one name the later, at a higher address, comes first. */
static int container_pairs_compare(const void *a, const void *b)
{
	const struct container_pair *const *x = a, *const *y = b;
	int order = strcmp((*x)->name, (*y)->name);

	return order ? order : *x > *y ? -1 : *x < *y;
}

/* Fills SORTED, of COUNT elements, with the valid ones, each name once; returns how many. */
static size_t container_pairs_sort(
	const struct container_pair *from, size_t count, const struct container_pair **sorted)
{
	size_t valid = 0, kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (container_pair_is_valid(&from[i]))
			sorted[valid++] = &from[i];
	}
	qsort(sorted, valid, sizeof(*sorted), container_pairs_compare);
	for (size_t i = 0; i < valid; i++) {
		if (!kept || strcmp(sorted[kept - 1]->name, sorted[i]->name))
			sorted[kept++] = sorted[i];
	}
	return kept;
}

int container_pairs_copy(struct arena *arena, const struct container_pair *from, size_t count,
	struct container_pairs *ret_pairs, uint64_t *refused)
{
	autofree const struct container_pair **sorted = NULL;
	struct container_pair *items;
	size_t kept;

	if (!count)
		return 0;
	sorted = calloc(count, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	kept = MIN(container_pairs_sort(from, count, sorted), (size_t)CONTAINER_PAIRS_LIMIT);
	items = arena_alloc(arena, MAX(kept, 1) * sizeof(*items));
	if (!items)
		return arena->error;
	for (size_t i = 0; i < kept; i++) {
		const char *value = sorted[i]->value ? sorted[i]->value : "";
		char *copy = arena_strndup(arena, value, strlen(value));

		items[i].name = arena_strndup(arena, sorted[i]->name, strlen(sorted[i]->name));
		items[i].value = copy;
		if (!items[i].name || !copy)
			return arena->error;
		utf8_clean(copy, strlen(copy));
	}
	*ret_pairs = (struct container_pairs){ items, kept };
	*refused += count - kept;
	return 0;
}

const char *container_pairs_get(const struct container_pairs *pairs, const char *name)
{
	size_t low = 0, high = pairs->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(pairs->items[middle].name, name);

		if (!order)
			return pairs->items[middle].value;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
