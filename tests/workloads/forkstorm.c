/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks children that work for a moment in storm_child() and end, as fast as possible, for argv[1]
 * seconds. Prints `ready`, and at its end `children N`.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

__attribute__((noinline)) void storm_child(void)
{
	for (int i = 0; i < 1000000; i++)
		sink = sink * 31 + (uint64_t)i;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 60);
	unsigned long children = 0;

	puts("ready");
	fflush(stdout);
	while (time(NULL) < end) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0) {
			storm_child();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		children++;
	}
	printf("children %lu\n", children);
	return 0;
}
