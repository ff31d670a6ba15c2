/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/pace.h"
#include "base/cleanup.h"
#include "base/log.h"

enum {
	PROBE_AFTER = 6, /* attempts: half a minute */
	TOLD_KINDS = 8, /* kinds of failure to log: servers can invent many */
	MILLISECOND = 1000000,
};

static const uint64_t SHORTEST_NS = 500 * (uint64_t)MILLISECOND;
static const uint64_t DENIED_NS = 30000 * (uint64_t)MILLISECOND;
static const uint64_t LONGEST_NS = 300000 * (uint64_t)MILLISECOND;
/* A server that asks for more is broken or hostile. */
static const uint64_t RETRY_AFTER_LIMIT_NS = 3600000 * (uint64_t)MILLISECOND;

struct target {
	struct queue *queue;
	size_t number;
	char *name;
	struct payload payload; /* being sent */
	bool sending, second, answered;
	bool in_doubt; /* an earlier attempt may have arrived */
	struct remote_result result; /* with `answered` */
	uint64_t not_before_ns, backoff_ns;
	uint64_t first; /* the spool's number of the first payload, which these fields are about: */
	unsigned int suspicious; /* failures that the payload may have caused */
	bool probe; /* try the second next */
	bool others_pass; /* the second was accepted while the first was not */
	struct pace pace;
	struct log_rate refused_log;
	char reported[TOLD_KINDS][QUEUE_CODE_BYTES]; /* codes logged since the first failure */
	size_t reported_count;
	struct queue_figures figures;
};

struct queue {
	struct queue_options options;
	struct target *targets;
	uint64_t random;
};

/* ---- making --------------------------------------------------------------------------------- */

int queue_create(const struct queue_options *options, struct queue **ret_queue)
{
	struct queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->options = *options;
	q->random = options->seed;
	q->targets = calloc(options->target_count + 1, sizeof(*q->targets));
	for (size_t i = 0; q->targets && i < options->target_count; i++) {
		struct target *t = &q->targets[i];

		t->queue = q;
		t->number = i;
		t->name = strdup(options->targets[i].name);
		pace_init(&t->pace, options->targets[i].paced, 0);
		if (!t->name)
			break;
	}
	if (!q->targets || (options->target_count && !q->targets[options->target_count - 1].name)) {
		queue_destroy(q);
		return -ENOMEM;
	}
	q->options.targets = NULL;
	*ret_queue = q;
	return 0;
}

void queue_destroy(struct queue *q)
{
	if (!q)
		return;
	for (size_t i = 0; q->targets && i < q->options.target_count; i++) {
		payload_deinit(&q->targets[i].payload);
		free(q->targets[i].name);
	}
	free(q->targets);
	free(q);
}

/* Without the failure: the new settings may have fixed it. */
void queue_inherit(struct queue *q, size_t target, const struct queue *old, size_t old_target)
{
	struct queue_figures *f = &q->targets[target].figures;

	*f = old->targets[old_target].figures;
	f->failing = false;
	f->trouble[0] = 0;
}

/* ---- verdicts ------------------------------------------------------------------------------- */

/* splitmix64 */
static uint64_t next_random(struct queue *q)
{
	uint64_t z = (q->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void count_code(struct queue_figures *f, const char *code)
{
	size_t i = 0;

	while (i < f->code_count && strcmp(f->codes[i].code, code))
		i++;
	if (i == QUEUE_CODES_LIMIT) {
		/* The last slot counts all further codes. */
		i = QUEUE_CODES_LIMIT - 1;
		snprintf(f->codes[i].code, QUEUE_CODE_BYTES, "other");
	} else if (i == f->code_count) {
		snprintf(f->codes[f->code_count++].code, QUEUE_CODE_BYTES, "%s", code);
	}
	f->codes[i].count++;
}

static void wait(struct target *t, uint64_t first_ns, uint64_t now_ns)
{
	uint64_t asked = MIN(t->result.retry_after_ns, RETRY_AFTER_LIMIT_NS);
	uint64_t delay;

	t->backoff_ns = t->backoff_ns < first_ns ? first_ns : MIN(2 * t->backoff_ns, LONGEST_NS);
	delay = t->backoff_ns / 2 + next_random(t->queue) % (t->backoff_ns / 2);
	t->not_before_ns = now_ns + MAX(delay, asked);
}

static void recovered(struct target *t)
{
	if (t->figures.failing)
		log_info("a remote store accepts profiles again", "target=%s pending=%llu", t->name,
			(unsigned long long)spool_pending(t->queue->options.spool, t->number));
	t->figures.failing = false;
	t->reported_count = 0;
	t->figures.trouble[0] = 0;
	t->backoff_ns = 0;
}

/* Each kind of failure is logged once until the store accepts profiles again. */
static bool queue_is_reported(struct target *t, const char *code)
{
	for (size_t i = 0; i < t->reported_count; i++) {
		if (!strcmp(t->reported[i], code))
			return true;
	}
	if (t->reported_count == TOLD_KINDS)
		return true;
	snprintf(t->reported[t->reported_count++], QUEUE_CODE_BYTES, "%s", code);
	return false;
}

static void queue_failed(struct target *t)
{
	const struct remote_result *r = &t->result;

	if (!queue_is_reported(t, r->code))
		log_warn("a remote store does not accept profiles, they wait in the spool",
			"target=%s code=%s error=\"%s\"", t->name, r->code, r->message);
	t->figures.failing = true;
	snprintf(t->figures.trouble, sizeof(t->figures.trouble), "%s", r->message);
}

static void first_is_done(struct target *t)
{
	t->suspicious = 0;
	t->probe = t->others_pass = false;
}

static void queue_set_aside(struct target *t, uint64_t *counter)
{
	(*counter)++;
	if (log_rate_allows(&t->refused_log))
		log_warn("a profile is set aside because the remote store rejects it",
			"target=%s code=%s error=\"%s\"", t->name, t->result.code,
			t->result.message);
	(void)spool_reject(t->queue->options.spool, t->number, t->result.message);
	first_is_done(t);
}

static void on_sent(struct target *t)
{
	struct spool *spool = t->queue->options.spool;

	t->figures.sent_payloads++;
	pace_went_well(&t->pace);
	recovered(t);
	if (t->second) {
		t->others_pass = true;
		(void)spool_advance_second(spool, t->number);
		return;
	}
	(void)spool_advance(spool, t->number);
	first_is_done(t);
}

static void on_refused(struct target *t)
{
	if (!t->second) {
		queue_set_aside(t, &t->figures.refused);
		return;
	}
	/* It is judged again as the first; the refusal shows that the server works. */
	spool_not_sent(t->queue->options.spool, t->number);
	t->others_pass = true;
}

/* Failures that the payload may have caused. */
static bool is_suspicious(const struct remote_result *r)
{
	return r->verdict == REMOTE_AMBIGUOUS || r->blurred;
}

static bool is_too_fast(const struct remote_result *r)
{
	return !strcmp(r->code, "429") || !strcmp(r->code, "grpc_8");
}

/* Leaves the payload in the spool for the next attempt. */
static void leave_in_spool(struct target *t)
{
	struct spool *spool = t->queue->options.spool;

	if (t->result.verdict == REMOTE_AMBIGUOUS)
		spool_in_doubt(spool, t->number);
	else
		spool_not_sent(spool, t->number);
}

static void on_failure(struct target *t, uint64_t now_ns)
{
	const struct remote_result *r = &t->result;
	bool suspicious = !t->second && is_suspicious(r);

	if (is_too_fast(r))
		pace_too_fast(&t->pace);
	if (suspicious && t->others_pass) {
		queue_set_aside(t, &t->figures.poisonous);
		return;
	}
	leave_in_spool(t);
	t->suspicious += suspicious;
	t->probe = suspicious && t->suspicious >= PROBE_AFTER;
	queue_failed(t);
	wait(t, SHORTEST_NS, now_ns);
}

/* An attempt that did not arrive is not a repetition. */
static void count_repeated(struct target *t)
{
	bool arrived = t->result.verdict == REMOTE_SENT || t->result.verdict == REMOTE_AMBIGUOUS;

	t->figures.repeated += arrived && t->in_doubt;
	t->figures.repeated += t->result.resent;
}

static void queue_judge(struct target *t, uint64_t now_ns)
{
	t->answered = t->sending = false;
	payload_deinit(&t->payload);
	count_code(&t->figures, t->result.code);
	t->figures.sent_bytes += t->result.sent_bytes;
	count_repeated(t);
	switch (t->result.verdict) {
	case REMOTE_SENT:
		on_sent(t);
		break;
	case REMOTE_REFUSED:
		on_refused(t);
		break;
	case REMOTE_RETRY:
	case REMOTE_AMBIGUOUS:
		on_failure(t, now_ns);
		break;
	case REMOTE_DENIED:
		spool_not_sent(t->queue->options.spool, t->number);
		queue_failed(t);
		wait(t, DENIED_NS, now_ns);
		break;
	}
}

/* ---- sending -------------------------------------------------------------------------------- */

/* Called from the sender's run: the next queue_step() acts on the result. */
static void queue_on_done(void *context, const struct remote_result *result)
{
	struct target *t = context;

	t->result = *result;
	/* The log quotes the message. */
	for (char *c = t->result.message; *c; c++)
		*c = *c == '"' ? '\'' : *c;
	t->answered = true;
}

static int queue_choose(struct target *t, struct payload *ret_payload)
{
	struct spool *spool = t->queue->options.spool;
	struct payload first = { 0 };
	int err = spool_peek(spool, t->number, &first);

	t->second = false;
	if (err)
		return err;
	/* The spool may have dropped the previous first, for its limits. */
	if (spool_peeked(spool, t->number) != t->first)
		first_is_done(t);
	t->first = spool_peeked(spool, t->number);
	if (t->probe && !spool_peek_second(spool, t->number, ret_payload)) {
		payload_deinit(&first);
		t->second = true;
		return 0;
	}
	*ret_payload = first;
	return 0;
}

static void cannot_send(struct target *t, int err)
{
	t->result = (struct remote_result){ .verdict = REMOTE_RETRY, .code = "local" };
	snprintf(t->result.message, sizeof(t->result.message), "%s", strerror(-err));
	t->answered = true;
}

static void queue_begin(struct target *t, uint64_t now_ns)
{
	const struct queue_options *o = &t->queue->options;
	uint64_t delay;
	int err = queue_choose(t, &t->payload);

	if (err == -ENOENT)
		return;
	if (err) {
		/* A read error on disk: retry later. */
		t->not_before_ns = now_ns + LONGEST_NS / 10;
		return;
	}
	delay = pace_take(&t->pace, t->payload.raw_bytes, now_ns);
	if (delay) {
		t->not_before_ns = now_ns + delay;
		payload_deinit(&t->payload);
		return;
	}
	t->in_doubt = spool_begin(o->spool, t->number);
	t->sending = true;
	err = o->send(o->context, t->number, &t->payload, queue_on_done, t);
	if (err)
		cannot_send(t, err);
}

static uint64_t queue_step_next(struct target *t, uint64_t now_ns)
{
	if (t->answered)
		queue_judge(t, now_ns);
	if (!t->sending && now_ns >= t->not_before_ns)
		queue_begin(t, now_ns);
	if (t->answered)
		return now_ns;
	if (t->sending || t->not_before_ns <= now_ns)
		return UINT64_MAX;
	return t->not_before_ns;
}

uint64_t queue_step(struct queue *q, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < q->options.target_count; i++)
		next = MIN(next, queue_step_next(&q->targets[i], now_ns));
	return next;
}

bool queue_busy(const struct queue *q, uint64_t now_ns)
{
	for (size_t i = 0; i < q->options.target_count; i++) {
		const struct target *t = &q->targets[i];

		if (t->sending || (spool_pending(q->options.spool, i) && !t->figures.failing &&
					  t->not_before_ns <= now_ns))
			return true;
	}
	return false;
}

void queue_figures(const struct queue *q, size_t target, struct queue_figures *ret_figures)
{
	*ret_figures = q->targets[target].figures;
	ret_figures->pending = spool_pending(q->options.spool, target);
}
