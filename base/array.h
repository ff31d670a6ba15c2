/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Growth of plain arrays. The fields `T *items; size_t count, capacity;` stay in the owner's
 * struct, visible in a debugger; only the growth rule is here.
 */
#include <stddef.h>

/*
 * Ensures a capacity of at least NEED elements of ELEMENT_SIZE bytes, growing by about half each
 * time. Returns -E2BIG if NEED is over LIMIT elements, or -ENOMEM; the array is then unchanged.
 */
int array_reserve_(void **items, size_t *capacity, size_t need, size_t element_size, size_t limit);

#define array_reserve(items, capacity, need, limit) \
	array_reserve_((void **)&(items), &(capacity), (need), sizeof(*(items)), (limit))
