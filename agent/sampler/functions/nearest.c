/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/functions/nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/functions/name_forms.h"
#include "base/cleanup.h"
#include "base/edit_distance.h"

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
	size_t size = strlen(wanted), limit = edit_distance_limit(size), distance;

	if (nearest->text && !nearest->distance)
		return 0;
	if (is_qualified(form, wanted, size))
		return nearest_name_take(nearest, form, 0);
	if (nearest->text)
		limit = MIN(limit, nearest->distance - 1);
	distance = edit_distance(wanted, size, form->text, form->size, limit);
	return distance > limit ? 0 : nearest_name_take(nearest, form, distance);
}

int nearest_name_find(const struct index *index, const char *wanted, struct nearest_name *nearest)
{
	struct index_function f;
	struct name_forms forms;
	int err = 0;

	if (!*wanted || strlen(wanted) > EDIT_DISTANCE_BYTES)
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
