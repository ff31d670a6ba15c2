/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Attaches a program to places of one file in a process of its own. The kernel reads the
 * instruction at each place and stops at the memory of each process that maps it; a file whose
 * server does not answer, or a process whose memory is locked, would stop the caller too. The
 * child does what sites_attach() does, and passes the links on; it dies with its parent.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/sampler/probes/latency/sites.h"

struct attacher {
	pid_t pid; /* 0 = gone */
	int fd; /* our end of the socket; -1 = closed */
	uint64_t heard_ns; /* CLOCK_MONOTONIC of the child's start or its last message */
};

/* How long a child may be silent. */
enum { ATTACHER_PATIENCE_S = 30 };

/* Returns a negative errno if no process can be started. */
int attacher_start(struct attacher *a, const struct sites_program *program, int file_fd,
	const struct sites_place *places, size_t count);
/*
 * Takes what the child has sent so far into S. Returns -EAGAIN if it goes on, 0 if all is there,
 * what sites_attach() returned in the child, or -ETIMEDOUT if it was silent for too long. After an
 * error other than -EAGAIN nothing is attached, but a child that hangs may attach yet, until it is
 * gone.
 */
int attacher_receive(struct attacher *a, struct sites *s, uint64_t now_ns);
/* Tells the child to die; what it attached is detached by the kernel when it does. */
void attacher_kill(struct attacher *a);
/* Whether the child is gone. Does not wait. */
bool attacher_is_gone(struct attacher *a);
