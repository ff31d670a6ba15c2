/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Attaches a program to places of one file: by one link for all of them, or by an event for each.
 * Everything is held by descriptors, so nothing is left behind by a process that is killed. Knows
 * nothing of functions.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/probes/latency/latency.h"

struct sites_program {
	int fd;
	bool at_once; /* one link for many places */
	int event_type; /* of an event for one place, otherwise */
	bool cookie_in_path; /* of such an event: the kernel has no cookies (before 5.15) */
	uint32_t pid; /* only in this process, with `at_once`; 0 = in all */
};

struct sites_place {
	uint64_t file_off;
	uint64_t cookie;
	size_t number; /* the owner's */
};

/* What is attached: the descriptor of one link for many places, or of a link or event for each. */
struct sites {
	int *links;
	size_t count, capacity;
	struct latency_refused_site *refused;
	size_t refused_count, refused_capacity;
};

/*
 * Attaches PROGRAM to PLACES of the file FILE_FD; those that are refused are listed. Returns a
 * negative errno if the kernel's answer concerns more than the place (no rights, no descriptors, no
 * memory), or if a signal asks to end (-EINTR), and *RET_STEP; then nothing is attached.
 */
int sites_attach(struct sites *s, const struct sites_program *program, int file_fd,
	const struct sites_place *places, size_t count, const char **ret_step);
/*
 * Attaches PROGRAM to a place of this process's own program, where possible in this process only.
 * Returns a descriptor or a negative errno. Allocates no memory.
 */
int sites_attach_own(const struct sites_program *program, const struct sites_place *place);
/* Notes that a place is left out. Returns 0, -E2BIG or -ENOMEM. */
int sites_refuse(struct sites *s, size_t number, int err);
/* What sites_attach() says if it returns ERR. */
const char *sites_step(int err);
/* The links of all of LIST in one array, whose size *RET_COUNT is. Returns NULL without memory. */
int *sites_all_links(const struct sites *list, size_t count, size_t *ret_count);
/* Detaches all of LIST, and forgets what was refused. */
void sites_detach(struct sites *list, size_t count);
