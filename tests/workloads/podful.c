/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each line `NAME PERIOD FILE` of its input, a process called NAME that enters the control
 * group of FILE (cgroup.procs) and then spins for a millisecond in each PERIOD milliseconds. Says
 * `ready` when all lines so far have theirs; all end with it.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

__attribute__((noinline)) static void spin(clock_t end)
{
	while (clock() < end)
		for (uint64_t i = 0; i < 10000; i++)
			sink += i;
}

static void live(const char *name, unsigned int period_ms, const char *file)
{
	FILE *procs = fopen(file, "w");

	if (!procs || fputs("0", procs) < 0 || fclose(procs) || prctl(PR_SET_NAME, name) ||
		prctl(PR_SET_PDEATHSIG, SIGKILL))
		_exit(125);
	/* Not all at the same time. */
	usleep((useconds_t)(getpid() % (int)period_ms) * 1000);
	for (;;) {
		spin(clock() + CLOCKS_PER_SEC / 1000);
		usleep((period_ms - 1) * 1000);
	}
}

int main(void)
{
	char name[16], file[4096];
	unsigned int period_ms;

	signal(SIGCHLD, SIG_IGN);
	while (scanf("%15s %u %4095s", name, &period_ms, file) == 3) {
		if (!period_ms)
			break;
		switch (fork()) {
		case -1:
			return 125;
		case 0:
			live(name, period_ms, file);
		}
		puts("ready");
		fflush(stdout);
	}
	return 0;
}
