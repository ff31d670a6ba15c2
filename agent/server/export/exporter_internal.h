/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by exporter.c, exporter_stores.c and exporter_change.c. */
#include <pthread.h>

#include "agent/server/export/exporter.h"
#include "base/log.h"

/* The remote stores, created and replaced together. */
struct exporter_stores {
	struct remotes *transport;
	struct remote *remotes[SPOOL_TARGETS_LIMIT];
	char *identities[SPOOL_TARGETS_LIMIT]; /* their names in the spool */
	char names[SPOOL_TARGETS_LIMIT][64];
	bool paced[SPOOL_TARGETS_LIMIT];
	size_t count;
};

struct letter {
	struct letter *next;
	struct payload payload;
};

/* Shared by both threads under the lock. */
struct inbox {
	struct letter *head, *tail;
	size_t count, bytes;
};

/* New settings handed to the thread. */
struct change {
	struct exporter_stores stores; /* after the change: the old ones */
	struct spool *spool; /* NULL = the directory does not change */
	char *directory; /* NULL = it does not change */
	uint64_t limit_bytes, limit_age_ns;
	int err;
};

struct exporter {
	pthread_t thread;
	bool running;
	struct metrics *metrics;
	char *directory; /* the spool's */

	pthread_mutex_t lock; /* protects the fields up to the blank line */
	struct inbox inbox;
	struct exporter_figures figures;
	bool stopping;
	uint64_t deadline_ns; /* with `stopping` */
	struct change *change; /* NULL = none pending */
	pthread_cond_t changed; /* signalled when the change was made or failed */

	/*
	 * Used by the thread only. `stores` is replaced only by a change, for which the caller
	 * waits.
	 */
	struct exporter_stores stores;
	struct spool *spool;
	bool memory_only; /* the last payload put into the spool is not on disk */
	uint64_t abandoned; /* as last logged */
	uint64_t removals; /* as last logged, and the payloads lost by them */
	uint64_t removed;
	struct log_rate not_kept_log;
	struct queue *queue;
};

/* exporter.c */
int exporter_make_spool(const struct exporter_stores *stores,
	const struct exporter_options *options, struct spool **ret_spool, char **ret_message);
int exporter_make_queue(struct exporter *e, const struct exporter_stores *stores,
	struct spool *spool, struct queue **ret_queue);
void exporter_empty_inbox(struct exporter *e); /* moves payloads into the spool */
void exporter_publish(struct exporter *e); /* copies the figures for readers */

/* exporter_change.c */
/* Applies the pending change, if any. Called by the thread between two steps. */
void exporter_take_change(struct exporter *e);

/* exporter_stores.c */
/* -EINVAL: *RET_MESSAGE says what is wrong. Call deinit also after a failure. */
int exporter_stores_init(struct exporter_stores *s, const struct remote_options *options,
	size_t count, char **ret_message);
void exporter_stores_deinit(struct exporter_stores *s);
/* The index of the store with IDENTITY; `count` if there is none. */
size_t exporter_stores_find(const struct exporter_stores *s, const char *identity);
