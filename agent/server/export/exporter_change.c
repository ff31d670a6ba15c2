/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New settings for an exporter that runs. The caller makes all that can be made beside what is in
 * use (stores, and the spool of another directory) and waits; the thread, which owns the rest, puts
 * it in place between two of its turns. So an error leaves everything as it was, and the spool's
 * lock, what it holds in memory and all counts outlive the change.
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

/* E's spool stays behind in its directory; what is only in memory is lost. */
static void leave_spool(struct exporter *e, struct change *c)
{
	uint64_t waiting = 0;

	for (size_t i = 0; i < e->stores.count; i++)
		waiting += spool_pending(e->spool, i);
	metrics_add(e->metrics, METRIC_SPOOL_ABANDONED_DIRECTORY, waiting);
	if (waiting)
		log_warn("profiles stay behind in a directory that is the spool no longer",
			"directory=\"%s\" profiles=%llu", e->directory,
			(unsigned long long)waiting);
	spool_destroy(e->spool);
	free(e->directory);
	e->spool = take(c->spool);
	e->directory = take(c->directory);
	e->memory_only = false;
	e->abandoned = e->removals = e->removed = 0;
}

/* Between two turns of the thread. What fails, fails before anything has changed. */
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
	/* It was made for the stores as they are: new ones begin behind it. */
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

/* The same path, or another one of the same directory. */
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
