/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sending, as the composition sees it: a thread `export` that owns the spool and the remote stores.
 * Payloads are handed over through a bounded inbox whose oldest goes when it is full; nothing here
 * ever waits for the disk or the network but creating and destroying.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/queue.h"
#include "agent/server/export/remote/remote.h"

struct exporter;

struct exporter_options {
	const char *spool_directory;
	uint64_t spool_limit_bytes, spool_limit_age_ns;
	const struct remote_options *remotes; /* borrowed for the call; names differ */
	/* What earlier versions called them in the spool; NULL = nothing. */
	const char *const *old_names;
	size_t remote_count; /* SPOOL_TARGETS_LIMIT at most */
	struct metrics *metrics;
};

struct exporter_target_figures {
	char name[64];
	struct queue_figures queue;
	uint64_t dropped[SPOOL_DROPS];
};

struct exporter_figures {
	struct exporter_target_figures targets[SPOOL_TARGETS_LIMIT];
	size_t target_count;
	uint64_t spool_bytes, spool_oldest_ns;
};

/*
 * -EINVAL: an option makes no sense; -EBUSY, -EPERM: as spool_create(). *RET_MESSAGE (the caller's
 * to free) says which, or is NULL.
 */
int exporter_create(
	const struct exporter_options *options, struct exporter **ret_exporter, char **ret_message);
/*
 * OPTIONS from now on. Everything that can fail is done before anything changes: after an error all
 * is as it was. A store that stays keeps its place in the spool and its figures. A new directory
 * that takes nothing is an error here (-EROFS), while at the start it is not: the old one works.
 * What waits in the old one stays behind, and is counted.
 */
int exporter_change(struct exporter *e, const struct exporter_options *options, char **ret_message);
/* Whether the remote stores could be made; opens nothing. */
int exporter_check(const struct exporter_options *options, char **ret_message);
/*
 * Puts what is in the inbox into the spool and goes on sending for GRACE_NS at most; the rest stays
 * in the spool for the next start.
 */
void exporter_destroy(struct exporter *e, uint64_t grace_ns);
/* Moves PAYLOAD in: it is empty afterwards. */
void exporter_submit(struct exporter *e, struct payload *payload);
/* As of the last turn of the thread. */
void exporter_figures(struct exporter *e, struct exporter_figures *ret_figures);
