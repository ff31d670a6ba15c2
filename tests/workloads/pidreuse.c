/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs argv[2] and argv[3] by turns until both together have used argv[1] seconds of CPU time,
 * always under the same pid (clone3() with set_tid, Linux 5.5, CAP_CHECKPOINT_RESTORE). Prints
 * `pid N`, then `ready`, and at its end `children N`. Exit status 3: the kernel or the capability
 * is missing.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Like fork(), with the pid PID; 0 = any. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args how = { .exit_signal = SIGCHLD };

	if (pid) {
		how.set_tid = (uint64_t)(uintptr_t)&pid;
		how.set_tid_size = 1;
	}
	return (pid_t)syscall(SYS_clone3, &how, sizeof(how));
}

static int run(pid_t pid, char *program)
{
	char *arguments[] = { program, NULL };
	pid_t child = fork_as(pid);

	if (child == 0) {
		execv(program, arguments);
		_exit(127);
	}
	if (child < 0)
		return -errno;
	waitpid(child, NULL, 0);
	return 0;
}

static time_t used_seconds(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return used.ru_utime.tv_sec + used.ru_stime.tv_sec;
}

/* Returns a free pid far from the next ones, as threads may take many in a row. */
static pid_t free_pid(void)
{
	for (pid_t pid = getpid() + 20000; pid < getpid() + 29000; pid++) {
		if (kill(pid % 30000 + 1000, 0) && errno == ESRCH)
			return pid % 30000 + 1000;
	}
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pid = free_pid();
	unsigned long children = 0;
	time_t enough;
	int err;

	if (argc != 4 || !pid)
		return 2;
	enough = strtol(argv[1], NULL, 10);
	printf("pid %d\nready\n", pid);
	fflush(stdout);
	while (used_seconds() < enough) {
		err = run(pid, argv[2 + children % 2]);
		if (err == -EEXIST || err == -EAGAIN)
			continue;
		if (err)
			return err == -EPERM || err == -ENOSYS ? 3 : 1;
		children++;
	}
	printf("children %lu\n", children);
	return 0;
}
