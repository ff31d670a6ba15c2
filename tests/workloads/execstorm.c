/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes short processes for argv[1] seconds, argv[2] per second if the machine can: the programs
 * argv[3...] in turn, or itself, working for a moment in storm_exec_child(). Prints `ready`, and at
 * its end `children N` and `cpu_ms N`, their CPU time in total.
 */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

__attribute__((noinline)) void storm_exec_child(void)
{
	for (int i = 0; i < 40000; i++)
		sink = sink * 31 + (uint64_t)i;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	const struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static unsigned long run(uint64_t seconds, uint64_t rate, char **programs, int program_count)
{
	uint64_t start = now_ns(), end = start + seconds * 1000000000u;
	unsigned long children = 0;

	while (now_ns() < end) {
		char *child[] = { programs[children % (unsigned int)program_count], "child", NULL };
		pid_t pid;

		sleep_until(start + children * (1000000000u / rate));
		if (posix_spawn(&pid, child[0], NULL, NULL, child, NULL))
			continue;
		children++;
		while (waitpid(-1, NULL, children % 8 ? WNOHANG : 0) > 0)
			;
	}
	while (wait(NULL) > 0)
		;
	return children;
}

int main(int argc, char **argv)
{
	unsigned long children;
	struct rusage used;

	if (argc == 2 && !strcmp(argv[1], "child")) {
		storm_exec_child();
		_exit(0);
	}
	if (argc < 3)
		return 2;
	puts("ready");
	fflush(stdout);
	children = run(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10),
		argc > 3 ? argv + 3 : argv, argc > 3 ? argc - 3 : 1);
	getrusage(RUSAGE_CHILDREN, &used);
	printf("children %lu\ncpu_ms %ld\n", children,
		(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
			(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000);
	return 0;
}
