/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The most expensive stack to unwind: 250 frames of as many functions, each with a page of stack
 * and, by its alignment, a page of unwind rules of its own. Spins there for argv[1] seconds, after
 * a line `ready`.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAGE_BYTES = 4096, FRAMES = 250 };

typedef uint64_t function(int left, time_t end);

static volatile uint64_t sink;

__attribute__((noinline)) static void spin(time_t end)
{
	while (time(NULL) < end)
		for (int i = 0; i < 1000000; i++)
			sink = sink * 31 + (uint64_t)i;
	__asm__ volatile("" ::: "memory");
}

static function *const functions[256];

#define ONE(n)                                                                               \
	__attribute__((noinline, aligned(65536))) static uint64_t f##n(int left, time_t end) \
	{                                                                                    \
		volatile uint8_t page[PAGE_BYTES];                                           \
                                                                                             \
		page[0] = (uint8_t)left;                                                     \
		if (left)                                                                    \
			page[1] = (uint8_t)functions[left - 1](left - 1, end);               \
		else                                                                         \
			spin(end);                                                           \
		return page[0] + page[1];                                                    \
	}
/* clang-format off */
#define SIXTEEN(n) \
	ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) \
	ONE(n##8) ONE(n##9) ONE(n##a) ONE(n##b) ONE(n##c) ONE(n##d) ONE(n##e) ONE(n##f)
#define NAMES(n) \
	f##n##0, f##n##1, f##n##2, f##n##3, f##n##4, f##n##5, f##n##6, f##n##7, \
	f##n##8, f##n##9, f##n##a, f##n##b, f##n##c, f##n##d, f##n##e, f##n##f

SIXTEEN(0) SIXTEEN(1) SIXTEEN(2) SIXTEEN(3) SIXTEEN(4) SIXTEEN(5) SIXTEEN(6) SIXTEEN(7)
SIXTEEN(8) SIXTEEN(9) SIXTEEN(a) SIXTEEN(b) SIXTEEN(c) SIXTEEN(d) SIXTEEN(e) SIXTEEN(f)

static function *const functions[256] = {
	NAMES(0), NAMES(1), NAMES(2), NAMES(3), NAMES(4), NAMES(5), NAMES(6), NAMES(7),
	NAMES(8), NAMES(9), NAMES(a), NAMES(b), NAMES(c), NAMES(d), NAMES(e), NAMES(f),
};
/* clang-format on */

int main(int argc, char **argv)
{
	if (argc < 2)
		return 1;
	puts("ready");
	fflush(stdout);
	return functions[FRAMES - 1](FRAMES - 1, time(NULL) + strtol(argv[1], NULL, 10)) == 1;
}
