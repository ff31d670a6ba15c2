/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes argv[1] calls of getppid() and argv[2] of nanosleep(), of a millisecond each. Prints
 * `FUNCTION CALLS LEAST MOST` for both: the end of the kernel function's name, how often it was
 * called, and how long that took in total, at least and at most, in ns.
 */
#include <inttypes.h>
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

int main(int argc, char **argv)
{
	long parents = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	long sleeps = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	const struct timespec pause = { .tv_nsec = SLEEP_NS };
	uint64_t start_ns = now_ns(), asked_ns;

	for (long i = 0; i < parents; i++)
		if (syscall(SYS_getppid) < 0)
			return 1;
	asked_ns = now_ns();
	for (long i = 0; i < sleeps; i++)
		if (syscall(SYS_nanosleep, &pause, NULL))
			return 1;
	printf("sys_getppid %ld 0 %" PRIu64 "\n", parents, asked_ns - start_ns);
	printf("sys_nanosleep %ld %" PRId64 " %" PRIu64 "\n", sleeps, sleeps * SLEEP_NS,
		now_ns() - asked_ns);
	return 0;
}
