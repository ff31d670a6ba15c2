/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A process's properties as labels for relabelling. Names follow Parca's agent, so that its rules
 * work unchanged (`__meta_process_pid`, `__meta_process_executable_name`, …).
 */
#include <stdbool.h>

#include "agent/server/export/payload.h"
#include "agent/sampler/seam/symbolized.h"
#include "agent/sampler/seam/window_processes.h"

/*
 * Adds `executable` and the PROCESS_TEXT rows of sample_labels.def. Kernel threads get none: there
 * are hundreds of them.
 */
int process_labels(const struct process_facts *p, struct labels *labels);
/*
 * Adds the `__meta_…` labels. PROGRAM tells how its program was built; without it (NULL), labels
 * about that are left out. ENVIRONMENT names variables that become
 * `__meta_env_var_NAME`: NUL-terminated names, then an empty one; NULL = none. Labels of the
 * process's origin (parent, command line, cgroup, environment) are missing if the process has
 * exited or its pid was reused.
 */
int process_labels_meta(const struct process_facts *p, const struct symbolized_program *program,
	const char *environment, struct labels *labels);
/* The program's file name, else the process name; `kernel` for kernel threads. Untrusted bytes. */
void process_labels_service(const struct process_facts *p, char *name, size_t size);
