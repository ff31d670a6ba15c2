/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Works in a different stack each time, for argv[1] seconds: left() and right() call each other in
 * the order of a number's bits. Prints `ready`.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DEPTH = 24, ROUNDS = 100000 };

static volatile uint64_t sink;
static void left(uint64_t path, int depth);
static void right(uint64_t path, int depth);

static void go_on(uint64_t path, int depth)
{
	if (depth == 0) {
		for (int i = 0; i < ROUNDS; i++)
			sink = sink * 31 + (uint64_t)i;
	} else if (path & 1) {
		right(path >> 1, depth - 1);
	} else {
		left(path >> 1, depth - 1);
	}
	sink++;
}

__attribute__((noinline)) static void left(uint64_t path, int depth)
{
	go_on(path, depth);
	sink += 1;
}

__attribute__((noinline)) static void right(uint64_t path, int depth)
{
	go_on(path, depth);
	sink += 2;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 60);
	uint64_t path = (uint64_t)time(NULL);

	puts("ready");
	fflush(stdout);
	while (time(NULL) < end) {
		path = path * UINT64_C(6364136223846793005) + 1442695040888963407;
		go_on(path >> 32, DEPTH);
	}
	return 0;
}
