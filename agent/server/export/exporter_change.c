/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes the settings of a running exporter. The caller creates what can be created next to what
 * is in use (stores, and the spool of another directory) and waits. The thread, which owns
 * everything else, swaps it in between two steps. So an error changes nothing, and the spool's
 * lock, its payloads in memory and all counts survive the change.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/server/export/exporter_internal.h"
#include "base/cleanup.h"
#include "base/log.h"

/* ---- in the thread -------------------------------------------------------------------------- */

/* Leaves E's spool on disk; payloads that are only in memory are lost. */
static void leave_spool(struct exporter *e, struct change *c)
{
	uint64_t waiting = 0;

	for (size_t i = 0; i < e->stores.count; i++)
		waiting += spool_pending(e->spool, i);
	metrics_add(e->metrics, METRIC_SPOOL_ABANDONED_DIRECTORY, waiting);
	if (waiting)
		log_warn("profiles remain in the previous spool directory",
			"directory=\"%s\" profiles=%llu", e->directory,
			(unsigned long long)waiting);
	spool_destroy(e->spool);
	free(e->directory);
	e->spool = take(c->spool);
	e->directory = take(c->directory);
	e->memory_only = false;
	e->abandoned = e->removals = e->removed = 0;
}

/* Runs between two steps of the thread. Everything that can fail comes before the first change. */
static int make_change(struct exporter *e, struct change *c)
{
	const struct exporter_stores old = e->stores;
	struct queue *queue;
	int err = exporter_make_queue(e, &c->stores, c->spool ? c->spool : e->spool, &queue);

	if (err)
		return err;
	if (!c->spool)
		err = spool_set_targets(
			e->spool, (const char *const *)c->stores.identities, c->stores.count);
	if (err) {
		queue_destroy(queue);
		return err;
	}
	for (size_t i = 0; i < c->stores.count; i++) {
		size_t before = exporter_stores_find(&old, c->stores.identities[i]);

		if (before < old.count)
			queue_inherit(queue, i, e->queue, before);
	}
	if (c->spool)
		leave_spool(e, c);
	else
		spool_set_limits(e->spool, c->limit_bytes, c->limit_age_ns);
	e->stores = c->stores;
	c->stores = old;
	exporter_stores_deinit(&c->stores);
	queue_destroy(e->queue);
	e->queue = queue;
	return 0;
}

void exporter_take_change(struct exporter *e)
{
	struct change *c;

	pthread_mutex_lock(&e->lock);
	c = e->change;
	pthread_mutex_unlock(&e->lock);
	if (!c)
		return;
	/* Payloads in the inbox were made for the current stores: new ones start after them. */
	exporter_empty_inbox(e);
	c->err = make_change(e, c);
	exporter_publish(e);
	pthread_mutex_lock(&e->lock);
	e->change = NULL;
	pthread_cond_signal(&e->changed);
	pthread_mutex_unlock(&e->lock);
}

/* ---- in the caller's ------------------------------------------------------------------------ */

static void hand_over_change(struct exporter *e, struct change *c)
{
	pthread_mutex_lock(&e->lock);
	e->change = c;
	remotes_wakeup(e->stores.transport);
	while (e->change)
		pthread_cond_wait(&e->changed, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

/* Equal paths, or two paths to the same directory. */
static bool is_same_directory(const char *a, const char *b)
{
	struct stat x, y;

	if (!strcmp(a, b))
		return true;
	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int prepare_spool(struct change *c, const struct exporter_options *o, char **ret_message)
{
	int err;

	c->directory = strdup(o->spool_directory);
	if (!c->directory)
		return -ENOMEM;
	err = exporter_make_spool(&c->stores, o, &c->spool, ret_message);
	if (err || !spool_trouble(c->spool))
		return err;
	if (asprintf(ret_message, "the spool %s: %s", c->directory, spool_trouble(c->spool)) < 0)
		*ret_message = NULL;
	return -EROFS;
}

int exporter_change(struct exporter *e, const struct exporter_options *o, char **ret_message)
{
	struct change c = {
		.limit_bytes = o->spool_limit_bytes,
		.limit_age_ns = o->spool_limit_age_ns,
	};

	*ret_message = NULL;
	c.err = exporter_stores_init(&c.stores, o->remotes, o->remote_count, ret_message);
	if (!c.err && !is_same_directory(e->directory, o->spool_directory))
		c.err = prepare_spool(&c, o, ret_message);
	if (!c.err)
		hand_over_change(e, &c);
	if (c.err)
		exporter_stores_deinit(&c.stores);
	spool_destroy(c.spool);
	free(c.directory);
	return c.err;
}
