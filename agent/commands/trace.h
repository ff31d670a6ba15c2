/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the source files of `fathom trace`. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/commands/latency.h"
#include "agent/commands/trace_arguments.h"

/* trace_options.c: the settings, checked. Strings are borrowed from the settings. */
struct trace_plan {
	struct latency_plan probing; /* which functions of which processes */
	/* So many of probing.wanted are of -u, of kernel_wanted of -k, the others of --drilldown.
	 */
	size_t named, kernel_named;
	struct function_patterns drilldown; /* none = every function can be a root */
	struct function_patterns kernel_drilldown; /* likewise, of the kernel's */
	struct function_patterns program; /* one whose BIN is that of -x; none = there is no -x */
	struct trace_rules rules; /* of arguments */
	uint32_t max_depth; /* 0 = no limit */
	uint64_t min_duration_ns;
	/* Trees that begin once there are so many in a second are left out. */
	uint64_t max_events_per_second;
	const char *events; /* path of the file for Perfetto; NULL = none */
};

/*
 * Returns -EINVAL for a usage error, -ESRCH if there is no such process, or another negative errno,
 * after printing the reason to stderr.
 */
int trace_plan(const struct config *config, struct trace_plan *ret_plan);
void trace_plan_deinit(struct trace_plan *plan);
