/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The name that a user probably meant by one that no function has: the name that differs least, by
 * letters that are wrong, missing, superfluous or exchanged with their neighbour, or the same name
 * with its package or class before it. Knows no patterns; names that differ in a quarter of their
 * letters or more are none.
 */
#include <stddef.h>

#include "symbolizer/index/functions.h"

struct nearest_name {
	char *text; /* NULL = none; free() it */
	size_t distance; /* of TEXT: 0 = it is the name, with a package before it */
};

/* Puts the name in INDEX that is nearest to WANTED into NEAREST, unless what is there is as near.
 */
int nearest_name_find(const struct index *index, const char *wanted, struct nearest_name *nearest);
void nearest_name_deinit(struct nearest_name *nearest);
