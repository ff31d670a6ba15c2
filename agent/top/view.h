/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the user has chosen to see, changed key by key. Knows no terminal and no samples. */
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
	bool editing; /* the filter is being typed; it applies as it grows */
	char before[VIEW_FILTER_BYTES]; /* the filter when typing began, for Escape */
	size_t first; /* the row at the top */
	size_t page; /* rows that fit; the owner keeps it up to date */
};

enum view_answer {
	VIEW_NOTHING,
	VIEW_REDRAW,
	VIEW_QUIT,
};

/* KEY as keys_feed() gives it. */
enum view_answer view_key(struct view *v, int key);
/* Another table; keeps the order where it has that key. */
void view_show(struct view *v, enum rows_by by);
/* -EINVAL: no such word. */
int view_by_of_name(const char *name, enum rows_by *ret_by);
int view_key_of_name(const char *name, enum rows_key *ret_key);
/* For people: `self` where it means that. */
const char *view_key_name(enum rows_by by, enum rows_key key);
