/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known of a process, as labels for relabelling: names are those of Parca's agent, so that
 * its rules can be kept (`__meta_process_pid`, `__meta_process_executable_name`, …).
 */
#include <stdbool.h>

#include "agent/server/export/payload.h"
#include "agent/sampler/process/processes.h"
#include "symbolizer/index/index.h"

/*
 * `executable` and the PROCESS_TEXT rows of sample_labels.def. The kernel's threads have none:
 * there are hundreds of them.
 */
int process_labels(const struct process *p, struct labels *labels);
/*
 * `__meta_…`. INDEX: of its program; NULL: how that was made is not told. ENVIRONMENT: names of
 * variables that become `__meta_env_var_NAME`, each with its NUL, then an empty one; NULL = none.
 * What /proc has to tell (parent, command line, cgroup, environment) is missing for a process that
 * is gone, or whose pid is another's by now.
 */
int process_labels_meta(const struct process *p, const struct index *index, const char *environment,
	struct labels *labels);
/* The file name of its program, else its name; `kernel` for the kernel's threads. Foreign bytes. */
void process_labels_service(const struct process *p, char *name, size_t size);
