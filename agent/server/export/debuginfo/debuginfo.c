/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/debuginfo/debuginfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/server/export/debuginfo/debuginfo_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/log.h"
#include "base/thread.h"

enum {
	QUEUE_FILES = 64, /* each holds an open descriptor */
	ATTEMPTS = 10, /* then the file is left alone for an hour */
	DAY_S = 24 * 3600,
	HOUR_S = 3600,
	/*
	 * Parca drops an unfinished upload after 15 minutes and accepts a new one two minutes
	 * later.
	 */
	BROKEN_OFF_S = 20 * 60,
	/* Until then a file that does not answer takes neither time nor a place in the queue. */
	NO_ANSWER_S = 5 * 60,
};

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t SHORTEST_NS = 30 * SECOND_NS, LONGEST_NS = 600 * SECOND_NS;
/* Average rate to each server. */
static const uint64_t BYTES_PER_SECOND = 4 << 20;
/* A server that asks for more is broken or hostile. */
static const uint64_t RETRY_AFTER_LIMIT_NS = 3600 * SECOND_NS;

static int64_t now_s(void)
{
	return (int64_t)(clock_real_ns() / SECOND_NS);
}

static uint64_t debuginfo_key_of(const struct debuginfo_target *t, const struct build_id *id)
{
	uint64_t parts[2] = { t->hash, hash_bytes(id->bytes, id->size) };

	return hash_bytes(parts, sizeof(parts));
}

/* ---- from other threads --------------------------------------------------------------------- */

/* Under the lock. */
static bool debuginfo_is_wanted(const struct debuginfo *d, uint64_t key)
{
	if (d->current && d->current->key == key)
		return false;
	return !debuginfo_queue_has(&d->queue, key) &&
	       !debuginfo_known_has(&d->known, key, now_s());
}

bool debuginfo_wants(struct debuginfo *d, const struct build_id *id)
{
	bool wanted = false;

	if (!id->size)
		return false;
	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->target_count && !wanted; i++)
		wanted = debuginfo_is_wanted(d, debuginfo_key_of(&d->targets[i], id));
	if (wanted && d->queue.count + d->target_count > QUEUE_FILES) {
		metrics_add(d->metrics, METRIC_DEBUGINFO_POSTPONED, 1);
		wanted = false;
	}
	pthread_mutex_unlock(&d->lock);
	return wanted;
}

static void enqueue(struct debuginfo *d, size_t target, const struct build_id *id, int fd)
{
	struct debuginfo_job *job = calloc(1, sizeof(*job));

	if (!job)
		return; /* it will be offered again */
	*job = (struct debuginfo_job){
		.target = target,
		.key = debuginfo_key_of(&d->targets[target], id),
		.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0),
	};
	build_id_format(id, job->build_id, sizeof(job->build_id));
	pthread_mutex_lock(&d->lock);
	if (job->fd >= 0 && d->queue.count < QUEUE_FILES && debuginfo_is_wanted(d, job->key))
		debuginfo_queue_add(&d->queue, take(job));
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	debuginfo_job_free(job);
}

void debuginfo_offer(struct debuginfo *d, const struct build_id *id, int fd)
{
	if (fd < 0)
		return;
	for (size_t i = 0; i < d->target_count; i++)
		enqueue(d, i, id, fd);
	close(fd);
}

size_t debuginfo_pending(struct debuginfo *d)
{
	size_t count;

	pthread_mutex_lock(&d->lock);
	count = d->queue.count + (d->current != NULL);
	pthread_mutex_unlock(&d->lock);
	return count;
}

bool debuginfo_stopping(struct debuginfo *d)
{
	bool stopping;

	pthread_mutex_lock(&d->lock);
	stopping = d->stopping;
	pthread_mutex_unlock(&d->lock);
	return stopping;
}

/* ---- what came of it ------------------------------------------------------------------------ */

static enum metric debuginfo_metric_of(enum debuginfo_outcome outcome)
{
	switch (outcome) {
	case DEBUGINFO_UPLOADED:
		return METRIC_DEBUGINFO_UPLOADED;
	case DEBUGINFO_NOT_WANTED:
	case DEBUGINFO_BEING_UPLOADED:
		return METRIC_DEBUGINFO_NOT_WANTED;
	case DEBUGINFO_NOTHING:
		return METRIC_DEBUGINFO_NOTHING;
	case DEBUGINFO_UNREADABLE:
		return METRIC_DEBUGINFO_UNREADABLE;
	case DEBUGINFO_TOO_LARGE:
		return METRIC_DEBUGINFO_TOO_LARGE;
	case DEBUGINFO_REFUSED:
		return METRIC_DEBUGINFO_REFUSED;
	case DEBUGINFO_NO_ANSWER:
	case DEBUGINFO_BROKEN_OFF:
	case DEBUGINFO_FAILED:
	case DEBUGINFO_STOPPED:
		break;
	}
	return METRIC_DEBUGINFO_FAILED;
}

/* How long not to try the file at this server again; 0 = it stays in the queue. */
static int64_t rest_s(enum debuginfo_outcome outcome, const struct debuginfo_job *job)
{
	switch (outcome) {
	case DEBUGINFO_FAILED:
		return job->attempts < ATTEMPTS ? 0 : HOUR_S;
	case DEBUGINFO_BROKEN_OFF:
	case DEBUGINFO_BEING_UPLOADED:
		return BROKEN_OFF_S;
	case DEBUGINFO_NO_ANSWER:
		return NO_ANSWER_S;
	default:
		return DAY_S;
	}
}

static void log_outcome(
	const struct debuginfo *d, const struct debuginfo_job *job, enum debuginfo_outcome outcome)
{
	const char *name = d->targets[job->target].name;

	switch (outcome) {
	case DEBUGINFO_UPLOADED:
		log_info("debug information was uploaded", "target=%s build_id=%s", name,
			job->build_id);
		break;
	case DEBUGINFO_REFUSED:
	case DEBUGINFO_NO_ANSWER:
	case DEBUGINFO_BROKEN_OFF:
	case DEBUGINFO_FAILED:
		log_warn("debug information was not uploaded",
			"target=%s build_id=%s code=%s error=\"%s\"", name, job->build_id,
			d->result.code, d->result.message);
		break;
	default:
		log_debug("the server does not need this debug information",
			"target=%s build_id=%s outcome=%d", name, job->build_id, (int)outcome);
		break;
	}
}

/* Backs off from a failing server, twice as long each time. Under the lock. */
static void slow_down(struct debuginfo *d, struct debuginfo_target *t)
{
	uint64_t asked = MIN(d->result.retry_after_ns, RETRY_AFTER_LIMIT_NS);

	t->backoff_ns = MIN(MAX(2 * t->backoff_ns, SHORTEST_NS), LONGEST_NS);
	t->not_before_ns = clock_monotonic_ns() + MAX(t->backoff_ns, asked);
}

static void debuginfo_go_on(const struct debuginfo *d, struct debuginfo_target *t)
{
	t->backoff_ns = 0;
	t->not_before_ns = clock_monotonic_ns() + d->sent_bytes * SECOND_NS / BYTES_PER_SECOND;
}

/*
 * Whether the upload broke off before within a day. It would do so again: the file is too large for
 * the time limits of the server or a proxy, or for the line. Under the lock.
 */
static bool broke_off_again(struct debuginfo *d, const struct debuginfo_job *job)
{
	uint64_t key = hash_bytes(&job->key, sizeof(job->key));
	bool again = debuginfo_known_has(&d->known, key, now_s());

	(void)debuginfo_known_add(&d->known, key, now_s() + DAY_S, now_s());
	return again;
}

static void debuginfo_settle(
	struct debuginfo *d, struct debuginfo_job *job, enum debuginfo_outcome outcome)
{
	bool failed = outcome == DEBUGINFO_FAILED || outcome == DEBUGINFO_BROKEN_OFF;
	struct debuginfo_target *t = &d->targets[job->target];
	int64_t rest, until;

	job->attempts += failed;
	rest = rest_s(outcome, job);
	pthread_mutex_lock(&d->lock);
	d->current = NULL;
	if (outcome == DEBUGINFO_BROKEN_OFF && broke_off_again(d, job))
		rest = DAY_S;
	until = now_s() + rest;
	if (failed)
		slow_down(d, t);
	else
		debuginfo_go_on(d, t);
	if (rest)
		(void)debuginfo_known_add(&d->known, job->key, until, now_s());
	else
		debuginfo_queue_add(&d->queue, job);
	pthread_mutex_unlock(&d->lock);
	if (!rest)
		return;
	if (rest == DAY_S)
		(void)debuginfo_known_write(&d->known, job->key, until);
	debuginfo_job_free(job);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Under the lock. */
static void wait_until(struct debuginfo *d, uint64_t due_ns)
{
	struct timespec due = { .tv_sec = (time_t)(due_ns / SECOND_NS),
		.tv_nsec = (long)(due_ns % SECOND_NS) };

	if (due_ns == UINT64_MAX)
		pthread_cond_wait(&d->changed, &d->lock);
	else
		pthread_cond_timedwait(&d->changed, &d->lock, &due);
}

/* NULL if the thread is to stop. */
static struct debuginfo_job *next_job(struct debuginfo *d)
{
	struct debuginfo_job *job = NULL;
	uint64_t due_ns;

	pthread_mutex_lock(&d->lock);
	while (!d->stopping &&
		!(job = debuginfo_queue_take(&d->queue, d->targets, clock_monotonic_ns(), &due_ns)))
		wait_until(d, due_ns);
	d->current = job;
	pthread_mutex_unlock(&d->lock);
	return job;
}

static void *debuginfo_run(void *context)
{
	struct debuginfo *d = context;
	struct debuginfo_job *job;

	pthread_setname_np(pthread_self(), "debuginfo");
	while ((job = next_job(d)) != NULL) {
		enum debuginfo_outcome outcome;

		d->result = (struct remote_result){ 0 };
		d->sent_bytes = 0;
		outcome = debuginfo_upload(d, job);
		if (outcome != DEBUGINFO_STOPPED) {
			metrics_add(d->metrics, debuginfo_metric_of(outcome), 1);
			log_outcome(d, job, outcome);
			debuginfo_settle(d, job, outcome);
			continue;
		}
		pthread_mutex_lock(&d->lock);
		d->current = NULL;
		pthread_mutex_unlock(&d->lock);
		debuginfo_job_free(job);
	}
	return NULL;
}

/* ---- making --------------------------------------------------------------------------------- */

static int debuginfo_copy(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return text && !*ret_copy ? -ENOMEM : 0;
}

static int make_target(struct debuginfo *d, const struct remote_options *o, char **ret_message)
{
	struct debuginfo_target *t = &d->targets[d->target_count];
	autofree char *identity = NULL;
	int err = remote_create(d->transport, o, &t->remote, ret_message);

	if (err)
		return err;
	d->target_count++;
	t->plain_text = o->insecure || !strncmp(o->address, "http://", 7);
	/* By identity, not address: a file that one tenant has another may lack. */
	err = remote_identity(o, &identity, ret_message);
	if (err)
		return err;
	t->hash = hash_bytes(identity, strlen(identity));
	err = debuginfo_copy(o->name ? o->name : "parca", &t->name);
	if (!err)
		err = debuginfo_copy(o->proxy_url, &t->proxy_url);
	return err ? err : debuginfo_copy(o->ca_file, &t->ca_file);
}

static int debuginfo_make(
	struct debuginfo *d, const struct debuginfo_options *o, char **ret_message)
{
	int err = debuginfo_copy(o->directory, &d->directory);

	if (!err)
		err = io_make_directories(o->directory, 0700);
	if (!err)
		err = debuginfo_known_init(&d->known, o->directory, now_s());
	if (err)
		return err;
	d->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->stop_fd < 0)
		return -errno;
	err = remotes_create(&d->transport);
	for (size_t i = 0; !err && i < o->remote_count; i++)
		err = make_target(d, &o->remotes[i], ret_message);
	return err;
}

static int debuginfo_start(struct debuginfo *d)
{
	int err = thread_start(&d->thread, debuginfo_run, d);

	d->running = !err;
	return err;
}

static void debuginfo_unmake(struct debuginfo *d)
{
	for (size_t i = 0; i < d->target_count; i++) {
		remote_destroy(d->targets[i].remote);
		free(d->targets[i].name);
		free(d->targets[i].proxy_url);
		free(d->targets[i].ca_file);
	}
	remotes_destroy(d->transport);
	debuginfo_queue_deinit(&d->queue);
	debuginfo_known_deinit(&d->known);
	if (d->stop_fd >= 0)
		close(d->stop_fd);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d->directory);
	free(d);
}

static void init_lock(struct debuginfo *d)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

int debuginfo_create(const struct debuginfo_options *options, struct debuginfo **ret_debuginfo,
	char **ret_message)
{
	struct debuginfo *d;
	int err;

	*ret_message = NULL;
	if (options->remote_count > DEBUGINFO_TARGETS_LIMIT)
		return -E2BIG;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->metrics = options->metrics;
	d->strip = options->strip;
	d->strip_context = options->context;
	d->stop_fd = -1;
	init_lock(d);
	err = debuginfo_make(d, options, ret_message);
	if (!err)
		err = debuginfo_start(d);
	if (err) {
		debuginfo_unmake(d);
		return err;
	}
	*ret_debuginfo = d;
	return 0;
}

void debuginfo_destroy(struct debuginfo *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	(void)eventfd_write(d->stop_fd, 1);
	remotes_wakeup(d->transport);
	if (d->running)
		pthread_join(d->thread, NULL);
	debuginfo_unmake(d);
}
