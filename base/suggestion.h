/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a misspelt name may have meant: the nearest of the names that are offered. */
#include <stddef.h>

struct suggestion {
	const char *word; /* what was typed */
	size_t size; /* of WORD, which need not end there */
	const char *name; /* the nearest so far, borrowed; NULL = none is near */
	size_t distance; /* of NAME */
};

/* Of equally near names the first one is kept. */
void suggestion_offer(struct suggestion *s, const char *name);
