/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One child of the file helper, seen from its parent: its start, its socket, its CPU time. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct file_wire_answer;
struct file_wire_question;
struct file_wire_stage;

struct file_process {
	pid_t pid; /* -1 = none */
	int fd; /* our end of the socket */
	struct file_wire_stage *stage;
	uint64_t failures[4]; /* of its build ID readers that are counted already */
};

/* CLOCK_MONOTONIC, not the host's (base/clock.h), which stands still while the sampler works. */
uint64_t file_process_now_ns(void);
/* Starts a child, which says that it is ready in its first answer. */
int file_process_start(struct file_process *ret_process);
uint64_t file_process_cpu_ns(const struct file_process *process);
/* Sends Q with FD_COUNT descriptors. */
int file_process_send(const struct file_process *process, struct file_wire_question *q,
	const int *fds, size_t fd_count);
/* Returns 0 if there is something to receive, -ETIMEDOUT, or poll()'s error. */
int file_process_await(int fd, uint64_t deadline_ns);
/*
 * Receives an answer without waiting; *RET_BYTES: what it has of a file, *RET_FD: what was opened,
 * or -1. Returns -EAGAIN if there is none yet.
 */
int file_process_receive(int fd, struct file_wire_answer *answer, size_t *ret_bytes, int *ret_fd);
/*
 * Whether the child, or its reader of build IDs, waits for a CPU only: the machine is busy, and
 * nothing hangs. Reading a file of /proc that belongs to us never waits.
 */
bool file_process_is_starved(const struct file_process *process);
/* Waits a little for a child that is about to be gone. */
void file_process_wait(pid_t pid);
