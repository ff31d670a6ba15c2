/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/functions/nearest.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/functions/name_forms.h"
#include "base/cleanup.h"

enum {
	MAX_BYTES = 120, /* of WANTED: longer ones are not typed by hand */
	MAX_DISTANCE = 8,
	ROW = MAX_BYTES + MAX_DISTANCE + 1,
};

/* How many letters may differ. */
static size_t distance_limit(size_t bytes)
{
	return MIN(MAX(bytes / 4, (size_t)1), (size_t)MAX_DISTANCE);
}

/* One row of the matrix of distances: I letters of A against each beginning of B. Returns its
 * least. */
static size_t distance_row(uint8_t rows[3][ROW], size_t i, const char *a, const struct name_form *b)
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

/* How many letters of A (SIZE bytes, at most MAX_BYTES) have to change; anything over LIMIT is
 * LIMIT + 1. */
static size_t name_distance(const char *a, size_t size, const struct name_form *b, size_t limit)
{
	uint8_t rows[3][ROW];
	size_t differ = size > b->size ? size - b->size : b->size - size;

	if (differ > limit)
		return limit + 1;
	for (size_t j = 0; j <= b->size; j++)
		rows[0][j] = (uint8_t)j;
	for (size_t i = 1; i <= size; i++)
		if (distance_row(rows, i, a, b) > limit)
			return limit + 1;
	return MIN((size_t)rows[size % 3][b->size], limit + 1);
}

/* Whether FORM is the name after a package, a class or a namespace. */
static bool is_qualified(const struct name_form *form, const char *name, size_t size)
{
	const char *end = form->text + form->size;

	return form->size > size + 1 && !memcmp(end - size, name, size) &&
	       (end[-(ptrdiff_t)size - 1] == '.' || end[-(ptrdiff_t)size - 1] == ':');
}

static int nearest_name_take(
	struct nearest_name *nearest, const struct name_form *form, size_t distance)
{
	char *text = strndup(form->text, form->size);

	if (!text)
		return -ENOMEM;
	free(nearest->text);
	*nearest = (struct nearest_name){ text, distance };
	return 0;
}

/* Puts FORM into NEAREST if it is nearer. */
static int nearest_name_compare(
	struct nearest_name *nearest, const char *wanted, const struct name_form *form)
{
	size_t size = strlen(wanted), limit = distance_limit(size), distance;

	if (nearest->text && !nearest->distance)
		return 0;
	if (is_qualified(form, wanted, size))
		return nearest_name_take(nearest, form, 0);
	if (nearest->text)
		limit = MIN(limit, nearest->distance - 1);
	distance = name_distance(wanted, size, form, limit);
	return distance > limit ? 0 : nearest_name_take(nearest, form, distance);
}

int nearest_name_find(const struct index *index, const char *wanted, struct nearest_name *nearest)
{
	struct index_function f;
	struct name_forms forms;
	int err = 0;

	if (!*wanted || strlen(wanted) > MAX_BYTES)
		return 0;
	for (size_t i = 0; i < index_function_count(index) && !err; i++) {
		if (!index_function(index, i, &f))
			continue;
		name_forms_of(f.name, f.linkage, &forms);
		for (size_t n = 0; n < forms.count && !err; n++)
			err = nearest_name_compare(nearest, wanted, &forms.forms[n]);
	}
	return err;
}

void nearest_name_deinit(struct nearest_name *nearest)
{
	free(nearest->text);
	*nearest = (struct nearest_name){ 0 };
}
