/* SPDX-License-Identifier: Apache-2.0 */
/*
 * argv[1] processes that take turns in half of one CPU's time: each works for a millisecond, ten
 * frames deep, and sleeps while the others do. With argv[2], a cgroup, the i-th joins its child
 * argv[3 + i % (argc - 3)]. Prints `ready` when all run; all end with who started them.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 10, TURN_NS = 1000000 };
static volatile uint64_t sink;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static uint64_t crowd_work(int depth)
{
	uint64_t end, x = 1;

	if (depth)
		return crowd_work(depth - 1) + 1;
	end = cpu_ns() + TURN_NS;
	do {
		for (int i = 0; i < 10000; i++)
			x = x * 31 + (uint64_t)i;
		sink = x;
	} while (cpu_ns() < end);
	return x;
}

static void take_turns(unsigned long number, unsigned long count)
{
	uint64_t first = 2 * number * TURN_NS, pause = 2 * count * TURN_NS;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	for (uint64_t wait = first;; wait = pause) {
		t.tv_nsec += (long)(wait % 1000000000u);
		t.tv_sec += (time_t)(wait / 1000000000u) + t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		sink += crowd_work(DEPTH);
	}
}

static void join(const char *cgroup, const char *child)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/cgroup.procs", cgroup, child);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1) {
		perror(path);
		exit(1);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			kill(0, SIGKILL);
		}
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (argc > 3)
			join(argv[2], argv[3 + i % (unsigned long)(argc - 3)]);
		take_turns(i, count);
	}
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
