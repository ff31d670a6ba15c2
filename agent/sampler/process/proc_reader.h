/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What /proc/PID says of a process, beside its mappings. All reading goes through a descriptor of
 * the directory, which stays bound to the process: when another one takes the pid over, reads give
 * -ESRCH instead of the other's answers.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/process/processes.h"

struct proc_stat {
	char comm[PROCESS_COMM_BYTES + 1];
	char state; /* R, S, D, Z, … */
	bool kernel_thread;
	uint32_t threads; /* the main thread included, a zombie too */
	uint64_t start_ticks; /* after boot, in 1/sysconf(_SC_CLK_TCK) s */
};

/* An O_PATH descriptor of /proc/PID. -ESRCH when there is none. */
int proc_open(int proc_fd, uint32_t pid, int *ret_pid_fd);
int proc_read_stat(int pid_fd, struct proc_stat *ret_stat);
/* Fills ID with 64 hex digits, or "" where the control groups name no container. */
int proc_read_container_id(int pid_fd, char id[CONTAINER_ID_BYTES]);
/* The pid in the innermost pid namespace. -ENOENT: the kernel does not tell (before 4.1). */
int proc_read_namespace_pid(int pid_fd, uint32_t *ret_pid);
/*
 * A descriptor of /proc/PID/task/TID of a thread that still has memory, for a process whose main
 * thread has exited before the others. -ESRCH when there is none.
 */
int proc_open_live_thread(int pid_fd, uint32_t pid, int *ret_task_fd);

/* The container ID in one line of /proc/PID/cgroup, into ID; false when it has none. */
bool proc_container_id(const char *line, size_t length, char id[CONTAINER_ID_BYTES]);
