/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Growing of plain arrays: `T *items; size_t count, capacity;` stays visible in a debugger and in
 * the owner's struct; only the growth rule lives here.
 */
#include <stddef.h>

/*
 * Makes room for NEED elements of ELEMENT_SIZE bytes, growing by half at least. More than LIMIT
 * elements is -E2BIG; -ENOMEM leaves the array as it was.
 */
int array_reserve_(void **items, size_t *capacity, size_t need, size_t element_size, size_t limit);

#define array_reserve(items, capacity, need, limit) \
	array_reserve_((void **)&(items), &(capacity), (need), sizeof(*(items)), (limit))
