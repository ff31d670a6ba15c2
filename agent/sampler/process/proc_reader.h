/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What /proc/PID says about a process, except for its mappings. All reads go through a descriptor
 * of the directory, which stays bound to the process: once the pid is reused, they return -ESRCH
 * instead of the other process's data.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/process/processes.h"

struct proc_stat {
	char comm[PROCESS_COMM_BYTES + 1];
	char state; /* R, S, D, Z, … */
	bool kernel_thread;
	uint32_t threads; /* including the main thread, even if it is a zombie */
	uint64_t start_ticks; /* after boot, in 1/sysconf(_SC_CLK_TCK) s */
};

/* Opens an O_PATH descriptor of /proc/PID. Returns -ESRCH if there is none. */
int proc_open(int proc_fd, uint32_t pid, int *ret_pid_fd);
int proc_read_stat(int pid_fd, struct proc_stat *ret_stat);
/*
 * Reads the control groups, *RET_PATHS with one reference. Fills both others as container_id.h
 * says, or with "" if the groups tell none.
 */
int proc_read_cgroups(int pid_fd, char id[CONTAINER_ID_BYTES], char pod_uid[POD_UID_BYTES],
	struct cgroup_paths **ret_paths);
/*
 * Reads the pid in the innermost pid namespace. Returns -ENOENT if the kernel does not report it
 * (before 4.1).
 */
int proc_read_namespace_pid(int pid_fd, uint32_t *ret_pid);
/*
 * Opens /proc/PID/task/TID of a thread that still has memory, for a process whose main thread
 * exited before the others. Returns -ESRCH if there is none.
 */
int proc_open_live_thread(int pid_fd, uint32_t pid, int *ret_task_fd);
