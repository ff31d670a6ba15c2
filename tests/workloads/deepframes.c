/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * deepframes SECONDS KIB: a stack of KIB KiB, in frames of 4 KiB without frame pointers and full of
 * numbers that look like addresses; at its end spin() uses SECONDS of CPU time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORDS = 500 };

static volatile unsigned long sink;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void spin(double until)
{
	while (now() < until)
		for (unsigned long i = 0; i < 200000; i++)
			sink += i * sink + 1;
}

__attribute__((noinline)) static void descend(int frames, double until)
{
	volatile unsigned long words[WORDS];

	for (int i = 0; i < WORDS; i++)
		words[i] = (unsigned long)&words[i] ^
			   (unsigned long)i * 2654435761UL * (unsigned)frames;
	if (frames > 1)
		descend(frames - 1, until);
	else
		spin(until);
	sink += words[frames % WORDS];
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	printf("ready\n");
	fflush(stdout);
	descend((int)strtol(argv[2], NULL, 10) / 4, now() + strtod(argv[1], NULL));
	return 0;
}
