/* SPDX-License-Identifier: Apache-2.0 */
/* Calls a function that does nothing, as often as the argument says; prints the CPU time of a call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) long work(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	long times = argc > 1 ? strtol(argv[1], NULL, 10) : 100000, sum = 0;
	double began = now_ns();

	for (long i = 0; i < times; i++)
		sum += work(i);
	printf("%.1f\n", (now_ns() - began) / (double)times);
	return sum == 42;
}
