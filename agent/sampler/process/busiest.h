/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which processes used most CPU time so far: those that samples will most likely be of. */
#include <stddef.h>

#include "agent/sampler/process/processes.h"

typedef void busiest_fn(void *context, struct process *p);

/*
 * Calls FN for the MOST processes that used most CPU time, the busiest first. Kernel threads and
 * processes whose program is not known are left out. PROC_FD: /proc. Returns -ENOMEM or -E2BIG.
 */
int busiest_for_each(
	struct processes *processes, int proc_fd, size_t most, busiest_fn *fn, void *context);
