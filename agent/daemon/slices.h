/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Slices of time over which stored profiles are summed for the page. They begin at multiples of
 * their length since 1970. So does each file of the store that replaces windows, and is in one
 * slice.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/server/store/store.h"
#include "base/buffer.h"

/* How stored profiles of some time are divided. */
struct slices {
	int64_t from_ns; /* the first one's beginning */
	int64_t length_ns;
};

/* The shortest of at least ten minutes of which fewer than MOST are in SPAN_NS, or a week. */
int64_t slices_length_ns(int64_t span_ns, unsigned int most);
/* The beginning of the slice of TIME_NS. */
int64_t slices_begin_ns(int64_t time_ns, int64_t length_ns);
/*
 * About MOST slices for the files of S that overlap [FROM_NS, TO_NS). False: there are none, or
 * they cover so little time that each may be shown.
 */
bool slices_choose(const struct store *s, int64_t from_ns, int64_t to_ns, unsigned int most,
	struct slices *ret_slices);
/* Appends a JSON array of the slices in which files begin, oldest first. */
int slices_write(
	const struct store *s, const struct slices *slices, int64_t to_ns, struct buffer *out);
