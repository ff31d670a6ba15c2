/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spends its CPU time in known shares: prints `self FUNCTION PERCENT` and `total FUNCTION PERCENT`
 * lines, then `ready`, and runs for argv[1] seconds. It measures its own CPU time and always works
 * in the function that is furthest behind, so the shares hold on a busy machine, too. Built with
 * frame pointers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PARTS = 3 };

static volatile uint64_t sink;

/*
 * The clock is read rarely, to keep the vDSO out of the samples. The call of time() makes the
 * compiler set up a frame pointer.
 */
#define BURNER(name)                                \
	__attribute__((noinline)) void name(void)   \
	{                                           \
		uint64_t x = sink + 1;              \
                                                    \
		x += (uint64_t)time(NULL);          \
		for (int i = 0; i < 3000000; i++) { \
			x ^= x << 13;               \
			x ^= x >> 7;                \
			x ^= x << 17;               \
		}                                   \
		sink = x;                           \
	}

BURNER(burn_most)
BURNER(burn_some)
BURNER(burn_little)

__attribute__((noinline)) void call_some(void)
{
	burn_some();
	__asm__ volatile("" ::: "memory");
}

static const struct {
	const char *name;
	void (*run)(void);
	double share;
} parts[PARTS] = {
	{ "burn_most", burn_most, .6 },
	{ "burn_some", call_some, .3 },
	{ "burn_little", burn_little, .1 },
};

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int most_missing(const double *spent, double all)
{
	int most = 0;

	for (int i = 1; i < PARTS; i++) {
		if (parts[i].share * all - spent[i] > parts[most].share * all - spent[most])
			most = i;
	}
	return most;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 60);
	double spent[PARTS] = { 0 }, all = 0;

	for (int i = 0; i < PARTS; i++)
		printf("self %s %.0f\n", parts[i].name, parts[i].share * 100);
	puts("total call_some 30\ntotal main 100\nready");
	fflush(stdout);
	while (time(NULL) < end) {
		int part = most_missing(spent, all);
		double before = cpu_seconds(), used;

		parts[part].run();
		used = cpu_seconds() - before;
		spent[part] += used;
		all += used;
	}
	return 0;
}
