/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int array_reserve_(void **items, size_t *capacity, size_t need, size_t element_size, size_t limit)
{
	size_t grown, bytes;
	void *moved;

	if (need <= *capacity)
		return 0;
	if (need > limit)
		return -E2BIG;
	grown = *capacity + *capacity / 2 + 8;
	if (grown < need)
		grown = need;
	if (grown > limit)
		grown = limit;
	if (__builtin_mul_overflow(grown, element_size, &bytes))
		return -ENOMEM;
	moved = realloc(*items, bytes);
	if (!moved)
		return -ENOMEM;
	*items = moved;
	*capacity = grown;
	return 0;
}
