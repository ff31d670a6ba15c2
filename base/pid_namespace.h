/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether we see the pids of the whole machine, or only those of a container. */
#include <stdbool.h>

/* What people are told if not. */
#define PID_NAMESPACE_TROUBLE \
	"not in the host's PID namespace: only the processes of this one are sampled"
#define PID_NAMESPACE_FIX "hostPID: true (Kubernetes) or --pid=host (Docker, podman)"

/* -ENOENT or another negative errno: /proc is not there. *RET_INITIAL: it is the host's. */
int pid_namespace_is_initial(bool *ret_initial);
/* Whether it is certain that the namespace is a container's. */
bool pid_namespace_is_contained(void);
