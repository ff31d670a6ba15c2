/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/export/exporter.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

enum {
	INBOX_PAYLOADS = 1024,
	INBOX_BYTES = 32 << 20,
	LONGEST_TURN_MS = 1000, /* figures and upkeep are not older */
};

static const uint64_t MILLISECOND_NS = 1000000;

struct letter {
	struct letter *next;
	struct payload payload;
};

/* Shared by two threads under the lock. */
struct inbox {
	struct letter *head, *tail;
	size_t count, bytes;
};

struct exporter {
	pthread_t thread;
	bool running;
	struct metrics *metrics;

	pthread_mutex_t lock; /* over what follows, up to the blank line */
	struct inbox inbox;
	struct exporter_figures figures;
	bool stopping;
	uint64_t deadline_ns; /* with `stopping` */

	/* The thread's own. */
	struct remotes *transport;
	struct remote *remotes[SPOOL_TARGETS_LIMIT];
	char names[SPOOL_TARGETS_LIMIT][64];
	size_t remote_count;
	struct spool *spool;
	bool memory_only; /* what was put into the spool last is not on disk */
	struct queue *queue;
};

/* ---- inbox ---------------------------------------------------------------------------------- */

static struct letter *inbox_take(struct inbox *inbox)
{
	struct letter *letter = inbox->head;

	if (!letter)
		return NULL;
	inbox->head = letter->next;
	if (!inbox->head)
		inbox->tail = NULL;
	inbox->count--;
	inbox->bytes -= letter->payload.pprof.size;
	letter->next = NULL;
	return letter;
}

static void inbox_add(struct inbox *inbox, struct letter *letter)
{
	if (inbox->tail)
		inbox->tail->next = letter;
	else
		inbox->head = letter;
	inbox->tail = letter;
	inbox->count++;
	inbox->bytes += letter->payload.pprof.size;
}

static void letter_free(struct letter *letter)
{
	if (!letter)
		return;
	payload_deinit(&letter->payload);
	free(letter);
}

void exporter_submit(struct exporter *e, struct payload *payload)
{
	struct letter *letter = calloc(1, sizeof(*letter)), *dropped = NULL;

	if (!letter) {
		metrics_add(e->metrics, METRIC_EXPORT_INBOX_FULL, 1);
		payload_deinit(payload);
		return;
	}
	letter->payload = *payload;
	*payload = (struct payload){ 0 };
	pthread_mutex_lock(&e->lock);
	inbox_add(&e->inbox, letter);
	while (e->inbox.count > INBOX_PAYLOADS || e->inbox.bytes > INBOX_BYTES) {
		struct letter *oldest = inbox_take(&e->inbox);

		oldest->next = dropped;
		dropped = oldest;
	}
	pthread_mutex_unlock(&e->lock);
	while (dropped) {
		struct letter *next = dropped->next;

		metrics_add(e->metrics, METRIC_EXPORT_INBOX_FULL, 1);
		letter_free(dropped);
		dropped = next;
	}
	remotes_wakeup(e->transport);
}

/* ---- the thread ----------------------------------------------------------------------------- */

static struct letter *next_letter(struct exporter *e)
{
	struct letter *letter;

	pthread_mutex_lock(&e->lock);
	letter = inbox_take(&e->inbox);
	pthread_mutex_unlock(&e->lock);
	return letter;
}

/* Once each time that it changes: full disks and read-only ones last. */
static void report_memory(struct exporter *e, bool memory_only)
{
	if (memory_only && !e->memory_only)
		log_warn("the spool's disk takes no profiles, they do not survive a restart", "%s",
			"");
	else if (!memory_only && e->memory_only)
		log_info("the spool's disk takes profiles again", "%s", "");
	e->memory_only = memory_only;
}

static void empty_inbox(struct exporter *e)
{
	struct letter *letter;

	while ((letter = next_letter(e)) != NULL) {
		int err = spool_put(e->spool, &letter->payload);

		if (err < 0)
			metrics_add(e->metrics, METRIC_EXPORT_TOO_LARGE, 1);
		else
			report_memory(e, err == 1);
		letter_free(letter);
	}
}

static int send(void *context, size_t target, const struct payload *payload, remote_done_fn *done,
	void *done_context)
{
	struct exporter *e = context;

	return remote_send(e->remotes[target], payload, done, done_context);
}

static void publish(struct exporter *e)
{
	struct exporter_figures *f = &e->figures;

	pthread_mutex_lock(&e->lock);
	f->target_count = e->remote_count;
	for (size_t i = 0; i < e->remote_count; i++) {
		struct exporter_target_figures *t = &f->targets[i];

		memcpy(t->name, e->names[i], sizeof(t->name));
		queue_figures(e->queue, i, &t->queue);
		for (enum spool_drop why = 0; why < SPOOL_DROPS; why++)
			t->dropped[why] = spool_dropped(e->spool, i, why);
	}
	f->spool_bytes = spool_bytes(e->spool);
	f->spool_oldest_ns = spool_oldest_ns(e->spool, (int64_t)clock_real_ns());
	pthread_mutex_unlock(&e->lock);
}

static bool is_over(struct exporter *e, uint64_t now_ns)
{
	bool over;

	pthread_mutex_lock(&e->lock);
	over = e->stopping && !e->inbox.head &&
	       (now_ns >= e->deadline_ns || !queue_busy(e->queue, now_ns));
	pthread_mutex_unlock(&e->lock);
	return over;
}

static int turn_ms(struct exporter *e, uint64_t now_ns, uint64_t due_ns)
{
	uint64_t until = MIN(due_ns, now_ns + LONGEST_TURN_MS * MILLISECOND_NS);

	pthread_mutex_lock(&e->lock);
	if (e->stopping)
		until = MIN(until, e->deadline_ns);
	pthread_mutex_unlock(&e->lock);
	return until <= now_ns ? 0 : (int)((until - now_ns + MILLISECOND_NS - 1) / MILLISECOND_NS);
}

static void *run(void *context)
{
	struct exporter *e = context;
	const struct timespec pause = { .tv_nsec = 100 * (long)MILLISECOND_NS };
	uint64_t now, due;

	pthread_setname_np(pthread_self(), "export");
	for (;;) {
		empty_inbox(e);
		now = clock_monotonic_ns();
		due = queue_step(e->queue, now);
		spool_upkeep(e->spool);
		publish(e);
		if (is_over(e, now))
			return NULL;
		if (remotes_run(e->transport, turn_ms(e, now, due)))
			/* Out of memory: not in a busy loop. */
			nanosleep(&pause, NULL);
	}
}

/* ---- making --------------------------------------------------------------------------------- */

static int make_remotes(struct exporter *e, const struct exporter_options *o, char **ret_message)
{
	int err = remotes_create(&e->transport);

	for (size_t i = 0; !err && i < o->remote_count; i++) {
		err = remote_create(e->transport, &o->remotes[i], &e->remotes[i], ret_message);
		if (err)
			return err;
		snprintf(e->names[i], sizeof(e->names[i]), "%s", o->remotes[i].name);
		e->remote_count++;
	}
	return err;
}

int exporter_check(const struct exporter_options *options, char **ret_message)
{
	struct exporter e = { 0 };
	int err;

	*ret_message = NULL;
	if (options->remote_count > SPOOL_TARGETS_LIMIT)
		return -E2BIG;
	err = make_remotes(&e, options, ret_message);
	for (size_t i = 0; i < e.remote_count; i++)
		remote_destroy(e.remotes[i]);
	remotes_destroy(e.transport);
	return err;
}

static int make_spool(struct exporter *e, const struct exporter_options *o, char **ret_message)
{
	const char *names[SPOOL_TARGETS_LIMIT];
	struct spool_options options = {
		.directory = o->spool_directory,
		.limit_bytes = o->spool_limit_bytes,
		.limit_age_ns = o->spool_limit_age_ns,
		.targets = names,
		.target_count = e->remote_count,
		.metrics = o->metrics,
	};
	int err;

	for (size_t i = 0; i < e->remote_count; i++)
		names[i] = e->names[i];
	err = spool_create(&options, &e->spool);
	if (err && asprintf(ret_message, "the spool %s: %s", o->spool_directory,
			   err == -EPERM   ? "it must be yours and writable by nobody else"
			   : err == -EBUSY ? "another agent uses it"
					   : strerror(-err)) < 0)
		*ret_message = NULL;
	e->memory_only = !err && spool_trouble(e->spool);
	if (e->memory_only)
		log_error("the spool keeps profiles in memory only: they do not survive a restart",
			"directory=\"%s\" error=\"%s\"", o->spool_directory,
			spool_trouble(e->spool));
	return err;
}

static int make_queue(struct exporter *e, const struct exporter_options *o)
{
	struct queue_target targets[SPOOL_TARGETS_LIMIT];
	struct queue_options options = {
		.spool = e->spool,
		.targets = targets,
		.target_count = e->remote_count,
		.seed = clock_real_ns() ^ (uint64_t)getpid() << 32,
		.send = send,
		.context = e,
	};

	for (size_t i = 0; i < e->remote_count; i++)
		targets[i] = (struct queue_target){ e->names[i],
			o->remotes[i].type == REMOTE_PYROSCOPE };
	return queue_create(&options, &e->queue);
}

/* Signals are for the loop's thread. */
static int start(struct exporter *e)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&e->thread, NULL, run, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	e->running = !err;
	return -err;
}

static void unmake(struct exporter *e)
{
	struct letter *letter;

	for (size_t i = 0; i < e->remote_count; i++)
		remote_destroy(e->remotes[i]);
	queue_destroy(e->queue);
	remotes_destroy(e->transport);
	spool_destroy(e->spool);
	while ((letter = inbox_take(&e->inbox)) != NULL)
		letter_free(letter);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

int exporter_create(
	const struct exporter_options *options, struct exporter **ret_exporter, char **ret_message)
{
	struct exporter *e;
	int err;

	*ret_message = NULL;
	if (options->remote_count > SPOOL_TARGETS_LIMIT)
		return -E2BIG;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	pthread_mutex_init(&e->lock, NULL);
	e->metrics = options->metrics;
	err = make_remotes(e, options, ret_message);
	if (!err)
		err = make_spool(e, options, ret_message);
	if (!err)
		err = make_queue(e, options);
	if (!err)
		err = start(e);
	if (err) {
		unmake(e);
		return err;
	}
	*ret_exporter = e;
	return 0;
}

void exporter_destroy(struct exporter *e, uint64_t grace_ns)
{
	if (!e)
		return;
	if (e->running) {
		pthread_mutex_lock(&e->lock);
		e->stopping = true;
		e->deadline_ns = clock_monotonic_ns() + grace_ns;
		pthread_mutex_unlock(&e->lock);
		remotes_wakeup(e->transport);
		pthread_join(e->thread, NULL);
	}
	unmake(e);
}

void exporter_figures(struct exporter *e, struct exporter_figures *ret_figures)
{
	pthread_mutex_lock(&e->lock);
	*ret_figures = e->figures;
	pthread_mutex_unlock(&e->lock);
}
