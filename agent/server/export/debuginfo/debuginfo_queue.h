/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files that wait for their upload, in order. A server that backs off does not hold up the
 * files for others. The caller holds the lock that protects queue and servers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/module_id.h"

enum { DEBUGINFO_ID_TEXT_BYTES = 2 * BUILD_ID_MAX_BYTES + 1 };

struct debuginfo_target;

/* One file for one server. */
struct debuginfo_job {
	struct debuginfo_job *next;
	char build_id[DEBUGINFO_ID_TEXT_BYTES];
	uint64_t key; /* hash of file and server */
	size_t target;
	int fd;
	unsigned int attempts; /* failed ones */
};

/* Closes the file, too. NULL is allowed. */
void debuginfo_job_free(struct debuginfo_job *job);

/* Zeroed = empty. */
struct debuginfo_queue {
	struct debuginfo_job *head, *tail;
	size_t count;
};

void debuginfo_queue_deinit(struct debuginfo_queue *q);
/* Adds JOB at the end; Q owns it then. */
void debuginfo_queue_add(struct debuginfo_queue *q, struct debuginfo_job *job);
bool debuginfo_queue_has(const struct debuginfo_queue *q, uint64_t key);
/*
 * Takes the first job whose server among TARGETS is not backing off; NULL if there is none, with
 * *RET_DUE_NS the time of the next (UINT64_MAX = no jobs).
 */
struct debuginfo_job *debuginfo_queue_take(struct debuginfo_queue *q,
	const struct debuginfo_target *targets, uint64_t now_ns, uint64_t *ret_due_ns);
