/* SPDX-License-Identifier: Apache-2.0 */
/* Spins argv[2] calls deep for argv[1] seconds, after a line `ready`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

__attribute__((noinline)) static void spin(time_t end)
{
	while (time(NULL) < end)
		for (int i = 0; i < 1000000; i++)
			sink = sink * 31 + (uint64_t)i;
	__asm__ volatile("" ::: "memory");
}

/* Each frame has some variables. */
__attribute__((noinline)) static uint64_t descend(int depth, time_t end)
{
	volatile uint64_t block[4] = { (uint64_t)depth };

	if (depth)
		block[1] = descend(depth - 1, end);
	else
		spin(end);
	return block[0] + block[1];
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 1;
	puts("ready");
	fflush(stdout);
	return descend((int)strtol(argv[2], NULL, 10), time(NULL) + strtol(argv[1], NULL, 10)) == 1;
}
