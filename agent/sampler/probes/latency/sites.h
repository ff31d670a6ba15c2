/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Attaches a program to places of one file: by one link for all of them, or by an event and a link
 * for each. Everything is held by descriptors, so nothing is left behind by a process that is
 * killed. Knows nothing of functions.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/probes/latency/latency.h"

struct sites_program {
	int fd;
	bool at_once; /* one link for many places */
	int event_type; /* of an event for one place, otherwise */
};

struct sites_place {
	uint64_t file_off;
	uint64_t cookie;
	size_t number; /* the owner's */
};

/* What is attached: one descriptor of a link for many places, or for each. */
struct sites {
	int *links;
	size_t count, capacity;
	struct latency_refused_site *refused;
	size_t refused_count, refused_capacity;
};

/*
 * Attaches PROGRAM to PLACES of the file FILE_FD; those that are refused are listed. Returns a
 * negative errno if the kernel's answer concerns more than the place (no rights, no descriptors, no
 * memory), and *RET_STEP; then nothing is attached.
 */
int sites_attach(struct sites *s, const struct sites_program *program, int file_fd,
	const struct sites_place *places, size_t count, const char **ret_step);
/* Notes that a place is left out. Returns 0, -E2BIG or -ENOMEM. */
int sites_refuse(struct sites *s, size_t number, int err);
/* Detaches all of LIST, and forgets what was refused. */
void sites_detach(struct sites *list, size_t count);
