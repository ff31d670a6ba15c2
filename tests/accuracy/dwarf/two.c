/* SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"

static int deep(int x)
{
	return leaf(x) ^ leaf(x + 1);
}

static int deeper(int x)
{
	return x & 1 ? deep(x) : deep(x / 2) + leaf(3 * x);
}

int other(int x)
{
	return x > 1000 ? deeper(x) * deep(x) : deeper(x + 1);
}
