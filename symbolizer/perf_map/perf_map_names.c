/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/perf_map/perf_map_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static int compare_names(const void *a, const void *b)
{
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

enum {
	KEPT_FUNCTIONS = NAMES_LIMIT / 4 * 3,
	KEPT_TEXT_BYTES = NAMES_TEXT_BYTES / 2,
};

/* Names in use, ascending, which is line order. */
struct names {
	uint32_t *old, *new; /* offsets in the text, before and after names are moved */
	size_t count;
};

static void names_deinit(struct names *n)
{
	free(n->old);
	free(n->new);
}

static int list_names(const struct pieces *pieces, struct names *n)
{
	n->old = malloc(pieces->count * sizeof(*n->old) + 1);
	n->new = malloc(pieces->count * sizeof(*n->new) + 1);
	if (!n->old || !n->new)
		return -ENOMEM;
	for (size_t i = 0; i < pieces->count; i++)
		n->old[i] = pieces->items[i].name;
	qsort(n->old, pieces->count, sizeof(*n->old), compare_names);
	for (size_t i = 0; i < pieces->count; i++)
		if (!n->count || n->old[n->count - 1] != n->old[i])
			n->old[n->count++] = n->old[i];
	return 0;
}

/* Index of the oldest name to keep when there are too many. */
static size_t first_kept(const struct buffer *text, const struct names *n)
{
	size_t first = n->count, bytes = 0;

	while (first > 0 && n->count - first < KEPT_FUNCTIONS) {
		bytes += strlen((const char *)text->bytes + n->old[first - 1]) + 1;
		if (bytes > KEPT_TEXT_BYTES)
			break;
		first--;
	}
	return first;
}

static void move_names(struct buffer *text, struct names *n, size_t first)
{
	size_t used = 0;

	for (size_t i = first; i < n->count; i++) {
		size_t size = strlen((const char *)text->bytes + n->old[i]) + 1;

		memmove(text->bytes + used, text->bytes + n->old[i], size);
		n->new[i] = (uint32_t)used;
		used += size;
	}
	text->size = used;
}

static uint32_t new_name(const struct names *n, uint32_t old)
{
	const uint32_t *at = bsearch(&old, n->old, n->count, sizeof(*n->old), compare_names);

	return n->new[at - n->old];
}

/*
 * Removes pieces with names older than OLDEST and renumbers the others. Returns how many were
 * removed.
 */
static uint64_t drop_older(struct pieces *pieces, const struct names *n, uint32_t oldest)
{
	size_t kept = 0;
	uint64_t dropped;

	for (size_t i = 0; i < pieces->count; i++) {
		struct piece piece = pieces->items[i];

		if (piece.name < oldest)
			continue;
		piece.name = new_name(n, piece.name);
		pieces->items[kept++] = piece;
	}
	dropped = pieces->count - kept;
	pieces->count = kept;
	return dropped;
}

int names_keep_newest(struct pieces *pieces, struct buffer *text, uint64_t *ret_dropped)
{
	autocall(names_deinit) struct names n = { 0 };
	bool too_much = pieces->count > NAMES_LIMIT || text->size > KEPT_TEXT_BYTES;
	uint32_t oldest;
	size_t first;
	int err = list_names(pieces, &n);

	if (err)
		return err;
	first = too_much ? first_kept(text, &n) : 0;
	oldest = first < n.count ? n.old[first] : UINT32_MAX;
	move_names(text, &n, first);
	*ret_dropped = drop_older(pieces, &n, oldest);
	return 0;
}
