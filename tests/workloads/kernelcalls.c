/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes argv[1] calls of getppid() and argv[2] of nanosleep(), of a millisecond each. Prints
 * `FUNCTION CALLS LEAST MOST` for both: the end of the kernel function's name, how often it was
 * called, and how long that took in total, at least and at most, in ns. The calls come through
 * functions of which each calls the next one. With argv[3] it then uses the CPU for so many
 * milliseconds, in spin(), without a system call. With argv[4] it waits for so many milliseconds
 * after the first call.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const int64_t SLEEP_NS = 1000000;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define NOT_INLINED __attribute__((noinline, noclone))

/* After its call, so that no function ends by jumping to the next one. */
static volatile int returned;

static NOT_INLINED long inner(long number, const void *argument)
{
	long result = syscall(number, argument, NULL);

	returned++;
	return result;
}

static NOT_INLINED long middle(long number, const void *argument)
{
	long result = inner(number, argument);

	returned++;
	return result;
}

static NOT_INLINED long asks(void)
{
	long result = middle(SYS_getppid, NULL);

	returned++;
	return result;
}

static NOT_INLINED long sleeps_for(const struct timespec *pause)
{
	long result = middle(SYS_nanosleep, pause);

	returned++;
	return result;
}

/* The clock is read without a system call. */
static NOT_INLINED void spin(uint64_t ms)
{
	uint64_t end_ns = now_ns() + ms * 1000000u;

	while (now_ns() < end_ns)
		for (int i = 0; i < 10000; i++)
			returned++;
}

int main(int argc, char **argv)
{
	long parents = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	long sleeps = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	const struct timespec pause = { .tv_nsec = SLEEP_NS };
	uint64_t start_ns = now_ns(), asked_ns;

	for (long i = 0; i < parents; i++) {
		if (asks() < 0)
			return 1;
		if (!i && argc > 4)
			poll(NULL, 0, (int)strtol(argv[4], NULL, 10));
	}
	asked_ns = now_ns();
	for (long i = 0; i < sleeps; i++)
		if (sleeps_for(&pause))
			return 1;
	printf("sys_getppid %ld 0 %" PRIu64 "\n", parents, asked_ns - start_ns);
	printf("sys_nanosleep %ld %" PRId64 " %" PRIu64 "\n", sleeps, sleeps * SLEEP_NS,
		now_ns() - asked_ns);
	spin(argc > 3 ? strtoul(argv[3], NULL, 10) : 0);
	return 0;
}
