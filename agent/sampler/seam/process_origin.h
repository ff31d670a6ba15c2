/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a running process came from: a question about a process of a sealed window, and its answer.
 * The sampler reads it from /proc, which whoever serves and sends need not be able to.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/seam/window_processes.h"
#include "base/buffer.h"

/* Untrusted bytes, all of them. */
struct process_origin {
	uint32_t parent; /* its pid */
	struct buffer command_line; /* arguments, each with its NUL; may be cut */
	struct buffer cgroup; /* lines of /proc/PID/cgroup; may be cut */
	struct buffer environment; /* `NAME=value`, each with its NUL, as at exec; may be cut */
};

/*
 * Reads the origin of P. WITH_ENVIRONMENT: read that, too; it may hold secrets. Returns -ESRCH if P
 * has exited or its pid was reused. What cannot be read otherwise is empty.
 */
int process_origin_read(
	const struct process_facts *p, bool with_environment, struct process_origin *ret_origin);
/* Fine on a zeroed struct. */
void process_origin_deinit(struct process_origin *origin);
