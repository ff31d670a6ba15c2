/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many mistakes turn one name into another: letters that are wrong, missing, superfluous or
 * exchanged with their neighbour ("optimal string alignment").
 */
#include <stddef.h>

enum {
	EDIT_DISTANCE_BYTES = 120, /* of the first name: longer ones are not typed by hand */
	EDIT_DISTANCE_MAX = 8, /* the highest limit */
};

/*
 * The distance of A (A_SIZE bytes, at most EDIT_DISTANCE_BYTES) and B; LIMIT + 1 for all that is
 * over LIMIT, which is at most EDIT_DISTANCE_MAX.
 */
size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size, size_t limit);
/* A limit for a name of that many bytes: one mistake in four letters, at least one. */
size_t edit_distance_limit(size_t bytes);
