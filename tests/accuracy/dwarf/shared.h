/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

int other(int x);

static inline int leaf(int x)
{
	int result = 0;

	while (x) {
		result += x * x;
		x /= 3;
	}
	return result;
}
