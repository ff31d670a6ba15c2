/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/exporter_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

enum {
	INBOX_PAYLOADS = 1024,
	INBOX_BYTES = 32 << 20,
	LONGEST_TURN_MS = 1000, /* the longest interval between figures and upkeep */
};

static const uint64_t MILLISECOND_NS = 1000000;

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
	remotes_wakeup(e->stores.transport);
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

/* Logs changes only: full and read-only disks last. */
static void report_memory(struct exporter *e, bool memory_only)
{
	if (memory_only && !e->memory_only)
		log_warn("profiles cannot be written to the spool directory: they are kept in "
			 "memory and do not survive a restart",
			"%s", "");
	else if (!memory_only && e->memory_only)
		log_info("profiles are written to the spool directory again", "%s", "");
	e->memory_only = memory_only;
}

static void report_abandoned(struct exporter *e)
{
	uint64_t abandoned = spool_abandoned(e->spool);

	if (abandoned != e->abandoned)
		log_warn("profiles are abandoned: the remote store that they waited for is no "
			 "longer in the settings",
			"profiles=%llu", (unsigned long long)(abandoned - e->abandoned));
	e->abandoned = abandoned;
}

static void report_removed(struct exporter *e)
{
	uint64_t removed = 0;

	for (size_t i = 0; i < e->stores.count; i++)
		removed += spool_dropped(e->spool, i, SPOOL_DROP_REMOVED);
	if (spool_removals(e->spool) != e->removals)
		log_warn("files of the spool were removed from outside, the profiles in them are "
			 "lost",
			"directory=\"%s\" profiles=%llu", e->directory,
			(unsigned long long)(removed - MIN(removed, e->removed)));
	e->removals = spool_removals(e->spool);
	e->removed = removed;
}

/* At shutdown, when metrics are no longer read. */
static void report_memory_lost(struct exporter *e)
{
	uint64_t lost = spool_memory_records(e->spool);

	if (lost)
		log_warn("profiles that could not be written to the spool directory are lost",
			"profiles=%llu", (unsigned long long)lost);
}

static void report_not_kept(struct exporter *e, const struct payload *payload, int err)
{
	bool too_large = err == -E2BIG;

	metrics_add(
		e->metrics, too_large ? METRIC_EXPORT_TOO_LARGE : METRIC_EXPORT_WINDOW_FAILED, 1);
	if (log_rate_allows(&e->not_kept_log))
		log_warn("a profile is dropped because it does not fit into the spool",
			"bytes=%zu error=\"%s\"", payload->pprof.size,
			too_large ? "larger than the limit of the spool" : strerror(-err));
}

void exporter_empty_inbox(struct exporter *e)
{
	struct letter *letter;

	while ((letter = next_letter(e)) != NULL) {
		int err = spool_put(e->spool, &letter->payload);

		if (err < 0)
			report_not_kept(e, &letter->payload, err);
		else
			report_memory(e, err == 1);
		letter_free(letter);
	}
}

static int send(void *context, size_t target, const struct payload *payload, remote_done_fn *done,
	void *done_context)
{
	struct exporter *e = context;

	return remote_send(e->stores.remotes[target], payload, done, done_context);
}

void exporter_publish(struct exporter *e)
{
	struct exporter_figures *f = &e->figures;

	pthread_mutex_lock(&e->lock);
	f->target_count = e->stores.count;
	for (size_t i = 0; i < e->stores.count; i++) {
		struct exporter_target_figures *t = &f->targets[i];

		memcpy(t->name, e->stores.names[i], sizeof(t->name));
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

/* ---- running -------------------------------------------------------------------------------- */

static void *exporter_run(void *context)
{
	struct exporter *e = context;
	const struct timespec pause = { .tv_nsec = 100 * (long)MILLISECOND_NS };
	uint64_t now, due;

	pthread_setname_np(pthread_self(), "export");
	for (;;) {
		exporter_take_change(e);
		exporter_empty_inbox(e);
		now = clock_monotonic_ns();
		due = queue_step(e->queue, now);
		spool_upkeep(e->spool);
		report_abandoned(e);
		report_removed(e);
		exporter_publish(e);
		if (is_over(e, now))
			return NULL;
		if (remotes_run(e->stores.transport, turn_ms(e, now, due)))
			/* Out of memory: avoid a busy loop. */
			nanosleep(&pause, NULL);
	}
}

/* ---- making --------------------------------------------------------------------------------- */

int exporter_check(const struct exporter_options *options, char **ret_message)
{
	struct exporter_stores stores;
	int err;

	*ret_message = NULL;
	err = exporter_stores_init(&stores, options->remotes, options->remote_count, ret_message);
	exporter_stores_deinit(&stores);
	return err;
}

int exporter_make_spool(const struct exporter_stores *stores, const struct exporter_options *o,
	struct spool **ret_spool, char **ret_message)
{
	struct spool_options options = {
		.directory = o->spool_directory,
		.limit_bytes = o->spool_limit_bytes,
		.limit_age_ns = o->spool_limit_age_ns,
		.targets = (const char *const *)stores->identities,
		.old_targets = o->old_names,
		.target_count = stores->count,
		.metrics = o->metrics,
	};
	int err = spool_create(&options, ret_spool);

	if (err && asprintf(ret_message, "the spool %s: %s", o->spool_directory,
			   err == -EPERM   ? "it must belong to you and be writable by nobody else"
			   : err == -EBUSY ? "another agent uses it"
					   : strerror(-err)) < 0)
		*ret_message = NULL;
	return err;
}

int exporter_make_queue(struct exporter *e, const struct exporter_stores *stores,
	struct spool *spool, struct queue **ret_queue)
{
	struct queue_target targets[SPOOL_TARGETS_LIMIT];
	struct queue_options options = {
		.spool = spool,
		.targets = targets,
		.target_count = stores->count,
		.seed = clock_real_ns() ^ (uint64_t)getpid() << 32,
		.send = send,
		.context = e,
	};

	for (size_t i = 0; i < stores->count; i++)
		targets[i] = (struct queue_target){ stores->names[i], stores->paced[i] };
	return queue_create(&options, ret_queue);
}

static int exporter_start(struct exporter *e)
{
	int err = thread_start(&e->thread, exporter_run, e);

	e->running = !err;
	return err;
}

static void exporter_unmake(struct exporter *e)
{
	struct letter *letter;

	exporter_stores_deinit(&e->stores);
	queue_destroy(e->queue);
	spool_destroy(e->spool);
	while ((letter = inbox_take(&e->inbox)) != NULL)
		letter_free(letter);
	pthread_cond_destroy(&e->changed);
	pthread_mutex_destroy(&e->lock);
	free(e->directory);
	free(e);
}

static int exporter_make(struct exporter *e, const struct exporter_options *o, char **ret_message)
{
	int err = exporter_stores_init(&e->stores, o->remotes, o->remote_count, ret_message);

	if (!err)
		err = exporter_make_spool(&e->stores, o, &e->spool, ret_message);
	if (err)
		return err;
	e->memory_only = spool_trouble(e->spool);
	if (e->memory_only)
		log_error("the spool keeps profiles only in memory: they do not survive a restart",
			"directory=\"%s\" error=\"%s\"", o->spool_directory,
			spool_trouble(e->spool));
	e->directory = strdup(o->spool_directory);
	return e->directory ? exporter_make_queue(e, &e->stores, e->spool, &e->queue) : -ENOMEM;
}

int exporter_create(
	const struct exporter_options *options, struct exporter **ret_exporter, char **ret_message)
{
	struct exporter *e = calloc(1, sizeof(*e));
	int err;

	*ret_message = NULL;
	if (!e)
		return -ENOMEM;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	e->metrics = options->metrics;
	err = exporter_make(e, options, ret_message);
	if (!err)
		err = exporter_start(e);
	if (err) {
		exporter_unmake(e);
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
		remotes_wakeup(e->stores.transport);
		pthread_join(e->thread, NULL);
		report_memory_lost(e);
	}
	exporter_unmake(e);
}

void exporter_figures(struct exporter *e, struct exporter_figures *ret_figures)
{
	pthread_mutex_lock(&e->lock);
	*ret_figures = e->figures;
	pthread_mutex_unlock(&e->lock);
}
