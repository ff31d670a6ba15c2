/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of work() by known paths, on several threads at once. At the end each path is a line `CALLS
 * INNER_NS OUTER_NS work;CALLER;…;ROOT`: all its calls took at least what work() itself saw
 * (INNER), at most what its caller saw (OUTER). Names are those of functions without parameters;
 * `held` is inlined. The argument is how often. Also compiled as C, where nothing is inlined by
 * force.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))
#define HELD static inline __attribute__((always_inline))

enum { THREADS = 4, DEPTH = 20 };

struct path {
	const char *names;
	uint64_t calls, inner_ns, outer_ns;
};

static struct path paths[] = {
	{ "work;by_hand", 0, 0, 0 },
	{ "work;held;by_inlined", 0, 0, 0 },
	{ "work;by_depth", 0, 0, 0 }, /* by_depth is there DEPTH times */
	{ "work;by_large_frame;by_two", 0, 0, 0 },
};

static __thread struct path *now;
static volatile uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void add(uint64_t *to, uint64_t value)
{
	__atomic_add_fetch(to, value, __ATOMIC_RELAXED);
}

/* Two returns, and something inlined at its entry. */
HELD uint64_t first_of(uint64_t n)
{
	return now_ns() + n * 0;
}

APART uint64_t work(uint64_t n)
{
	uint64_t began_ns = first_of(n);

	if (n % 3 == 0) {
		add(&now->inner_ns, now_ns() - began_ns);
		return n;
	}
	for (uint64_t i = 0; i < n; i++)
		sink += i;
	add(&now->inner_ns, now_ns() - began_ns);
	return sink;
}

static uint64_t counted(uint64_t began_ns, uint64_t result)
{
	add(&now->outer_ns, now_ns() - began_ns);
	add(&now->calls, 1);
	return result;
}

APART uint64_t by_hand(uint64_t n)
{
	uint64_t began_ns = now_ns();

	return counted(began_ns, work(n)) + 1;
}

HELD uint64_t held(uint64_t n)
{
	uint64_t began_ns = now_ns();

	return counted(began_ns, work(n)) + 2;
}

APART uint64_t by_inlined(uint64_t n)
{
	return held(n) * 3;
}

APART uint64_t by_depth(uint64_t n, int depth)
{
	uint64_t began_ns;
	volatile uint64_t kept = n;
	uint64_t result;

	if (depth > 1) {
		result = by_depth(n, depth - 1);
		return result ^ kept;
	}
	began_ns = now_ns();
	result = counted(began_ns, work(n));
	return result ^ kept;
}

APART uint64_t by_large_frame(uint64_t n)
{
	volatile char room[6000];
	uint64_t began_ns = now_ns();

	room[n % sizeof(room)] = 1;
	return counted(began_ns, work(n)) + (uint64_t)room[n % sizeof(room)];
}

APART uint64_t by_two(uint64_t n)
{
	return by_large_frame(n) + 4;
}

APART void *run(void *argument)
{
	uint64_t times = *(const uint64_t *)argument;

	for (uint64_t n = 0; n < times; n++) {
		now = &paths[n % 4];
		switch (n % 4) {
		case 0:
			sink += by_hand(n % 50);
			break;
		case 1:
			sink += by_inlined(n % 60);
			break;
		case 2:
			sink += by_depth(n % 70, DEPTH);
			break;
		default:
			sink += by_two(n % 80);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t times = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, &times))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		const char *names = paths[i].names;

		printf("%llu %llu %llu %s", (unsigned long long)paths[i].calls,
			(unsigned long long)paths[i].inner_ns,
			(unsigned long long)paths[i].outer_ns, names);
		for (int d = 1; i == 2 && d < DEPTH; d++)
			printf(";by_depth");
		puts(";run");
	}
	return 0;
}
