/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/span_label.h"

#include <string.h>

#include "base/cleanup.h"

enum { SPAN_ID_DIGITS = 16 };

/* 0 is no id. */
static bool span_label_is_id(const char *text)
{
	return strlen(text) == SPAN_ID_DIGITS &&
	       strspn(text, "0123456789abcdefABCDEF") == SPAN_ID_DIGITS &&
	       strspn(text, "0") < SPAN_ID_DIGITS;
}

size_t span_label(const struct profile *profile, const struct profile_sample *sample,
	struct pprof_label *ret_label)
{
	static const char *const keys[] = { "span_id", "span id", "profile_id" };
	const struct profile_fiber fiber = profile_fiber_at(profile, sample->fiber);
	struct profile_fiber_label label;
	size_t best = ARRAY_SIZE(keys);
	const char *at = NULL;

	while (profile_fiber_next(&fiber, &at, &label)) {
		for (size_t i = 0; i < best; i++) {
			if (strcmp(label.key, keys[i]) != 0 || !span_label_is_id(label.value))
				continue;
			*ret_label = (struct pprof_label){ .key = keys[0], .text = label.value };
			best = i;
		}
	}
	return best < ARRAY_SIZE(keys);
}
