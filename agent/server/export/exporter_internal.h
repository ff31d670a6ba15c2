/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the exporter's files share: exporter.c, exporter_stores.c, exporter_change.c. */
#include <pthread.h>

#include "agent/server/export/exporter.h"
#include "base/log.h"

/* The remote stores, which are made and replaced together. */
struct exporter_stores {
	struct remotes *transport;
	struct remote *remotes[SPOOL_TARGETS_LIMIT];
	char *identities[SPOOL_TARGETS_LIMIT]; /* by which the spool knows them */
	char names[SPOOL_TARGETS_LIMIT][64];
	bool paced[SPOOL_TARGETS_LIMIT];
	size_t count;
};

struct letter {
	struct letter *next;
	struct payload payload;
};

/* Shared by two threads under the lock. */
struct inbox {
	struct letter *head, *tail;
	size_t count, bytes;
};

/* New settings on their way to the thread. */
struct change {
	struct exporter_stores stores; /* when it is done: the old ones */
	struct spool *spool; /* NULL: the directory stays */
	char *directory; /* as above */
	uint64_t limit_bytes, limit_age_ns;
	int err;
};

struct exporter {
	pthread_t thread;
	bool running;
	struct metrics *metrics;
	char *directory; /* of the spool */

	pthread_mutex_t lock; /* over what follows, up to the blank line */
	struct inbox inbox;
	struct exporter_figures figures;
	bool stopping;
	uint64_t deadline_ns; /* with `stopping` */
	struct change *change; /* NULL = none is asked for */
	pthread_cond_t changed; /* it was made, or cannot be */

	/* The thread's own. Only a change, for which the caller waits, replaces the stores. */
	struct exporter_stores stores;
	struct spool *spool;
	bool memory_only; /* what was put into the spool last is not on disk */
	uint64_t abandoned; /* as the log knows it */
	uint64_t removals; /* as the log knows them, and what they cost */
	uint64_t removed;
	struct log_rate not_kept_log;
	struct queue *queue;
};

/* exporter.c */
int exporter_make_spool(const struct exporter_stores *stores,
	const struct exporter_options *options, struct spool **ret_spool, char **ret_message);
int exporter_make_queue(struct exporter *e, const struct exporter_stores *stores,
	struct spool *spool, struct queue **ret_queue);
void exporter_empty_inbox(struct exporter *e); /* into the spool */
void exporter_publish(struct exporter *e); /* the figures */

/* exporter_change.c */
/* Makes the change that is asked for, if one is. For the thread, between two turns. */
void exporter_take_change(struct exporter *e);

/* exporter_stores.c */
/* -EINVAL: *RET_MESSAGE says what is wrong. Deinit also after a failure. */
int exporter_stores_init(struct exporter_stores *s, const struct remote_options *options,
	size_t count, char **ret_message);
void exporter_stores_deinit(struct exporter_stores *s);
/* The number of the store that IDENTITY is, or COUNT. */
size_t exporter_stores_find(const struct exporter_stores *s, const char *identity);
