/* SPDX-License-Identifier: Apache-2.0 */
#include "base/edit_distance.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { ROW = EDIT_DISTANCE_BYTES + EDIT_DISTANCE_MAX + 1 };

struct name {
	const char *text;
	size_t size;
};

size_t edit_distance_limit(size_t bytes)
{
	return MIN(MAX(bytes / 4, (size_t)1), (size_t)EDIT_DISTANCE_MAX);
}

/* One row of the matrix of distances: I letters of A against each beginning of B. Returns its
 * least. */
static size_t distance_row(uint8_t rows[3][ROW], size_t i, const char *a, const struct name *b)
{
	const uint8_t *before = rows[(i - 1) % 3], *earlier = rows[(i + 1) % 3];
	uint8_t *now = rows[i % 3];
	size_t least = i;

	now[0] = (uint8_t)i;
	for (size_t j = 1; j <= b->size; j++) {
		bool same = a[i - 1] == b->text[j - 1];
		bool exchanged =
			i > 1 && j > 1 && a[i - 1] == b->text[j - 2] && a[i - 2] == b->text[j - 1];
		size_t best = before[j - 1] + (same ? 0u : 1u);

		best = MIN(best, MIN(before[j] + 1u, now[j - 1] + 1u));
		if (exchanged)
			best = MIN(best, earlier[j - 2] + 1u);
		now[j] = (uint8_t)best;
		least = MIN(least, best);
	}
	return least;
}

size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size, size_t limit)
{
	const struct name other = { b, b_size };
	uint8_t rows[3][ROW];
	size_t differ = a_size > b_size ? a_size - b_size : b_size - a_size;

	if (differ > limit)
		return limit + 1;
	for (size_t j = 0; j <= b_size; j++)
		rows[0][j] = (uint8_t)j;
	for (size_t i = 1; i <= a_size; i++)
		if (distance_row(rows, i, a, &other) > limit)
			return limit + 1;
	return MIN((size_t)rows[a_size % 3][b_size], limit + 1);
}
