/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stddef.h>

#include "symbolizer/index/index_frame.h"

/* The names of a runtime's frame. Texts are valid for the call that asked for them. */
struct runtime_names {
	/* A pseudo mapping such as "[python]", since there is no file; NULL = no runtime's frame.
	 */
	const char *mapping;
	size_t line_count; /* at most INDEX_MAX_FRAMES; 0 = not known */
	struct index_frame *lines; /* innermost first; the caller's */
};
