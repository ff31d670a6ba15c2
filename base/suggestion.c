/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggestion.h"

#include <string.h>

#include "base/edit_distance.h"

enum { BEGINNING_BYTES = 3 }; /* so much of a name suggests it */

void suggestion_offer(struct suggestion *s, const char *name)
{
	size_t size = strlen(name), limit = edit_distance_limit(s->size), distance;

	if (s->size > EDIT_DISTANCE_BYTES)
		return;
	distance = edit_distance(s->word, s->size, name, size, limit);
	/* `--freq`, or `recording` for `record`: farther than any mistake. */
	if (distance > limit && s->size >= BEGINNING_BYTES && size >= BEGINNING_BYTES &&
		!strncmp(s->word, name, s->size < size ? s->size : size))
		distance = limit + 1;
	else if (distance > limit)
		return;
	if (s->name && distance >= s->distance)
		return;
	s->name = name;
	s->distance = distance;
}
