/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sending, for the daemon: a thread `export` that owns the spool and the remote stores. Payloads go
 * through a bounded inbox, whose oldest is dropped when it is full. Only create, change and destroy
 * wait for the disk or the network.
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
	/* Their names in earlier versions' spools; NULL = none. */
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
 * -EINVAL: invalid option; -EBUSY, -EPERM: as spool_create(). *RET_MESSAGE (the caller's to free)
 * says which, or is NULL.
 */
int exporter_create(
	const struct exporter_options *options, struct exporter **ret_exporter, char **ret_message);
/*
 * Switches to OPTIONS. Everything that can fail is done first: on error nothing changes. A store
 * that remains keeps its position in the spool and its figures. A new directory that cannot be
 * written is an error here (-EROFS), unlike at the start, because the old one works. Payloads
 * pending in the old directory stay there and are counted.
 */
int exporter_change(struct exporter *e, const struct exporter_options *options, char **ret_message);
/* Checks whether the remote stores could be created; opens nothing. */
int exporter_check(const struct exporter_options *options, char **ret_message);
/*
 * Moves the inbox into the spool and goes on sending for at most GRACE_NS; what is unsent stays in
 * the spool for the next start.
 */
void exporter_destroy(struct exporter *e, uint64_t grace_ns);
/* Takes PAYLOAD's content and leaves it empty. */
void exporter_submit(struct exporter *e, struct payload *payload);
/* The figures as last published by the thread. */
void exporter_figures(struct exporter *e, struct exporter_figures *ret_figures);
