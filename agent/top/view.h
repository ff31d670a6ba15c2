/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The user's choices (table, order, filter, position), changed key by key. Knows no terminal and no
 * samples.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/top/rows.h"

enum { VIEW_FILTER_BYTES = 64 };

struct view {
	enum rows_by by;
	enum rows_key key;
	bool reverse;
	bool paused;
	bool help;
	char filter[VIEW_FILTER_BYTES]; /* "" = none; any bytes but control characters */
	bool editing; /* the filter is being typed; it applies at once */
	char before[VIEW_FILTER_BYTES]; /* the filter before editing, restored by Escape */
	size_t first; /* index of the top row */
	size_t page; /* rows on the screen; set by the owner */
};

enum view_answer {
	VIEW_NOTHING,
	VIEW_REDRAW,
	VIEW_QUIT,
};

/* Applies KEY, as returned by keys_feed(). */
enum view_answer view_key(struct view *v, int key);
/* Switches to another table; keeps the order if that table has the key. */
void view_show(struct view *v, enum rows_by by);
/* Return -EINVAL if there is no such name. */
int view_by_of_name(const char *name, enum rows_by *ret_by);
int view_key_of_name(const char *name, enum rows_key *ret_key);
/* The name of KEY for display: `self` for the CPU time of functions. */
const char *view_key_name(enum rows_by by, enum rows_key key);
