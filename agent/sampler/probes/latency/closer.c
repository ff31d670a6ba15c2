/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/latency/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { FEW = 8 };

static int closer_compare(const void *a, const void *b)
{
	int first = *(const int *)a, second = *(const int *)b;

	return (first > second) - (first < second);
}

static void closer_close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

/*
 * Waits until the caller has closed its own copies, which is the end of READY: whoever closes an
 * event last has to wait. Everything else is closed first: somebody may wait for the end of a pipe,
 * and a socket or a lock must not outlive its owner. Only functions that are safe after fork() in a
 * program with threads.
 */
static void closer_run(const int ready[2], const int *fds, size_t count)
{
	unsigned int next = 0;
	char byte;

	prctl(PR_SET_NAME, "fathom-detach");
	close(ready[1]);
	while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < count; i++) {
		if ((unsigned int)fds[i] > next)
			close_range(next, (unsigned int)fds[i] - 1, 0);
		next = (unsigned int)fds[i] + 1;
	}
	close_range(next, UINT_MAX, 0);
	closer_close_all(fds, count);
	_exit(0);
}

/* Forks twice, so that init reaps the process. */
static void closer_start(const int ready[2], const int *fds, size_t count)
{
	pid_t child = fork();

	if (!child) {
		/* Ctrl-C is not for it. */
		setsid();
		if (!fork())
			closer_run(ready, fds, count);
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

void closer_close(int *fds, size_t count)
{
	int ready[2];

	qsort(fds, count, sizeof(*fds), closer_compare);
	if (count <= FEW || pipe2(ready, O_CLOEXEC)) {
		closer_close_all(fds, count);
		return;
	}
	closer_start(ready, fds, count);
	/* Quick, unless no process could be started. */
	closer_close_all(fds, count);
	close(ready[0]);
	close(ready[1]);
}

pid_t closer_begin(int *fds, size_t count)
{
	int ready[2];
	pid_t child;

	if (!count)
		return 0;
	qsort(fds, count, sizeof(*fds), closer_compare);
	if (pipe2(ready, O_CLOEXEC)) {
		closer_close_all(fds, count);
		return 0;
	}
	child = fork();
	if (!child) {
		setsid();
		closer_run(ready, fds, count);
	}
	closer_close_all(fds, count);
	close(ready[0]);
	close(ready[1]);
	return MAX(child, 0);
}
