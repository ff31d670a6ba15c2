/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/busiest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { MAX_CANDIDATES = 262144 };

struct candidate {
	struct process *process;
	uint64_t ticks;
};

/* CPU time that PID has used, in clock ticks; 0 if unknown. */
static uint64_t busiest_ticks(int proc_fd, uint32_t pid)
{
	char path[32], line[512];
	unsigned long long user = 0, system = 0;
	const char *after_comm;

	snprintf(path, sizeof(path), "%u/stat", pid);
	if (io_read_line(proc_fd, path, line, sizeof(line)) < 0)
		return 0;
	after_comm = strrchr(line, ')');
	if (!after_comm ||
		sscanf(after_comm + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			&user, &system) != 2)
		return 0;
	return user + system;
}

static int busiest_by_ticks(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	return (a->ticks < b->ticks) - (a->ticks > b->ticks);
}

int busiest_for_each(
	struct processes *processes, int proc_fd, size_t most, busiest_fn *fn, void *context)
{
	autofree struct candidate *candidates = NULL;
	size_t count = 0, capacity = 0, iterator = 0;
	struct process *p;

	while ((p = processes_next(processes, &iterator)) != NULL) {
		int err;

		if (p->kernel_thread || !p->executable)
			continue;
		err = array_reserve(candidates, capacity, count + 1, MAX_CANDIDATES);
		if (err)
			return err;
		candidates[count++] = (struct candidate){ p, busiest_ticks(proc_fd, p->pid) };
	}
	if (count)
		qsort(candidates, count, sizeof(*candidates), busiest_by_ticks);
	for (size_t i = 0; i < count && i < most; i++)
		fn(context, candidates[i].process);
	return 0;
}
