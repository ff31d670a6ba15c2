/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Starts this program again as a child with a given set of descriptors and nothing else of ours: no
 * signal mask, no handlers, no other descriptors, /dev/null as standard streams.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "symbolizer/sandbox/sandbox_wire.h"

/* Descriptors for the child, numbered from SANDBOX_ELF_FD on. */
struct child_fds {
	int items[SANDBOX_FD_COUNT - SANDBOX_ELF_FD];
	bool owned[SANDBOX_FD_COUNT - SANDBOX_ELF_FD]; /* a duplicate */
	size_t count;
	size_t expected; /* how many will be added, at most */
};

/* Adds FD, which is borrowed until child_fds_close(). */
int child_fds_add(struct child_fds *fds, int fd);
void child_fds_close(struct child_fds *fds);
/* A pipe for the child's result: *RET_READ does not block. Both are close-on-exec. */
int child_pipe(int *ret_read, int *ret_write);
/* A socket for both directions: *RET_OURS does not block, *RET_THEIRS does. */
int child_channel(int *ret_ours, int *ret_theirs);
/* The state letter in proc_pid_stat(5) of PID; '?' = unknown. Never waits, not even for an execve()
 * of it. */
char child_state(pid_t pid);
/* Spawns the child in its own process group. */
int child_spawn(
	char *const argv[], char *const environment[], const struct child_fds *fds, pid_t *ret_pid);
