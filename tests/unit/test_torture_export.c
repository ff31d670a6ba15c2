/* SPDX-License-Identifier: Apache-2.0 */
/* agent/server/export while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/server/export/remote/otlp.h"
#include "agent/server/export/queue.h"
#include "agent/server/export/labels/relabel.h"
#include "agent/server/export/spool/spool.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "pprof/pprof.h"
#include "tests/unit/spool_fixture.h"

/* ---- OTLP ----------------------------------------------------------------------------------- */

struct encoding {
	struct payload payload;
	struct buffer out;
};

static void make_pprof(struct buffer *ret_gzip)
{
	const struct pprof_options options = { .types = { { "cpu", "nanoseconds" } },
		.type_count = 1,
		.default_type = "cpu",
		.period_type = { "cpu", "nanoseconds" },
		.period = 1 };
	const struct pprof_mapping mapping = { 0x1000, 0x9000, 0, "/shop", "abcd" };
	const struct pprof_line line = { "pay", "pay", "shop.c", 17, 3, 11 };
	const struct pprof_label label = { .key = "comm", .text = "shop" };
	const int64_t value = 5;
	struct pprof *p;
	uint64_t id;

	assert_int_equal(pprof_create(&options, &p), 0);
	assert_int_equal(pprof_mapping(p, &mapping, &id), 0);
	assert_int_equal(pprof_location(p, id, 0x1010, &line, 1, &id), 0);
	assert_int_equal(pprof_sample(p, &id, 1, &value, &label, 1), 0);
	assert_int_equal(pprof_encode(p, true, ret_gzip), 0);
	pprof_destroy(p);
}

static void begin_encoding(void *context)
{
	struct encoding *e = context;

	*e = (struct encoding){ .payload.duration_ns = 1 };
	buffer_init(&e->payload.pprof, 1 << 20);
	buffer_init(&e->out, 1 << 20);
	make_pprof(&e->payload.pprof);
	assert_int_equal(labels_set(&e->payload.labels, "service_name", "shop"), 0);
	assert_int_equal(labels_set(&e->payload.labels, "tid", "7"), 0);
}

static int encode_otlp(void *context)
{
	struct encoding *e = context;

	return otlp_encode(&e->payload, &e->out);
}

static void end_encoding(void *context, int result)
{
	struct encoding *e = context;

	if (result)
		assert_int_equal(e->out.size, 0);
	buffer_deinit(&e->out);
	payload_deinit(&e->payload);
}

/* Any other error would mark the payload as bad and drop it. */
static void otlp_without_memory_says_so(void **state)
{
	struct encoding e;
	struct torture t = { .begin = begin_encoding,
		.operation = encode_otlp,
		.end = end_encoding,
		.context = &e };

	(void)state;
	torture_run(&t);
}

/* ---- relabelling ---------------------------------------------------------------------------- */

struct relabelling {
	struct relabel *relabel;
	struct labels labels;
	char *message;
	bool keep;
};

static const char *const sources[] = { "comm", "node" };

static const struct relabel_rule rules[] = {
	{ .action = RELABEL_REPLACE,
		.source_labels = sources,
		.source_label_count = 2,
		.regex = "(.*);(.*)",
		.target_label = "both_$1",
		.replacement = "$2/$1" },
	{ .action = RELABEL_LABELMAP, .regex = "n(.*)", .replacement = "mapped_$1" },
	{ .action = RELABEL_LABELDROP, .regex = "node" },
	{ .action = RELABEL_UPPERCASE,
		.source_labels = sources,
		.source_label_count = 1,
		.target_label = "upper" },
};

static void begin_relabelling(void *context)
{
	struct relabelling *r = context;

	*r = (struct relabelling){ 0 };
	assert_int_equal(labels_set(&r->labels, "comm", "shop"), 0);
	assert_int_equal(labels_set(&r->labels, "node", "one"), 0);
}

static int relabel_labels(void *context)
{
	struct relabelling *r = context;
	int err = relabel_create(rules, ARRAY_SIZE(rules), &r->relabel, &r->message);

	return err ? err : relabel_apply(r->relabel, &r->labels, &r->keep);
}

static void end_relabelling(void *context, int result)
{
	struct relabelling *r = context;

	if (result) {
		assert_false(r->keep);
	} else {
		assert_true(r->keep);
		assert_string_equal(labels_get(&r->labels, "both_shop"), "one/shop");
		assert_string_equal(labels_get(&r->labels, "upper"), "SHOP");
		assert_null(labels_get(&r->labels, "node"));
	}
	free(r->message);
	relabel_destroy(r->relabel);
	labels_deinit(&r->labels);
}

static void relabelling_fails_with_its_error(void **state)
{
	struct relabelling r;
	struct torture t = { .begin = begin_relabelling,
		.operation = relabel_labels,
		.end = end_relabelling,
		.context = &r };

	(void)state;
	torture_run(&t);
}

/* ---- spool ---------------------------------------------------------------------------------- */

enum { PAYLOADS = 4, PAYLOAD_BYTES = 40000 }; /* one or two to a segment */

static const char *const targets[] = { "one", "two", NULL };

struct spooling {
	struct spool_fixture f;
	struct spool *spool;
	struct payload payloads[PAYLOADS];
	size_t taken;
	bool is_sent; /* the first of target 0 */
	uint64_t first;
};

static int open_spool(struct spooling *s)
{
	struct spool_options options = spool_fixture_options(&s->f, 1 << 20, targets);

	return spool_create(&options, &s->spool);
}

static void begin_spooling(void *context)
{
	struct spooling *s = context;

	*s = (struct spooling){ 0 };
	spool_fixture_init(&s->f);
	for (size_t i = 0; i < PAYLOADS; i++)
		spool_fixture_payload(i, PAYLOAD_BYTES, &s->payloads[i]);
}

static int put_all(void *context)
{
	struct spooling *s = context;
	int err = s->spool ? 0 : open_spool(s);

	for (; s->taken < PAYLOADS && err >= 0; s->taken += err >= 0)
		err = spool_put(s->spool, &s->payloads[s->taken]);
	return err < 0 ? err : 0;
}

static bool failed_to(const char *call)
{
	return torture_failed() && !strcmp(torture_failed(), call);
}

/*
 * Each accepted payload is read back, complete and in order. Only one that the disk could not
 * return may be missing, and is counted, as is a cursor that could not be read.
 */
static void drain(struct spooling *s, size_t target, size_t first)
{
	bool unreadable = failed_to("pread"), bad_cursor = failed_to("openat") || failed_to("read");
	uint64_t dropped, next = first;
	struct payload payload;

	while (spool_peek(s->spool, target, &payload) != -ENOENT) {
		uint64_t number = spool_fixture_check(&payload);

		assert_true(number == next || (unreadable && number == next + 1));
		next = number + 1;
		payload_deinit(&payload);
		assert_int_equal(spool_advance(s->spool, target), 0);
	}
	dropped = spool_dropped(s->spool, target, SPOOL_DROP_CORRUPT);
	assert_true(next == s->taken || (unreadable && next + 1 == s->taken));
	assert_true(dropped == 0 || ((unreadable || bad_cursor) && dropped == 1));
}

static void all_comes_out(void *context, int result)
{
	struct spooling *s = context;

	(void)result;
	assert_int_equal(put_all(s), 0);
	drain(s, 0, 0);
	drain(s, 1, 0);
	spool_destroy(s->spool);
	for (size_t i = 0; i < PAYLOADS; i++)
		payload_deinit(&s->payloads[i]);
	spool_fixture_deinit(&s->f);
}

static void payloads_in_the_spool_are_read_back(void **state)
{
	struct spooling s;
	/* Payloads the disk refuses stay in memory; draining the spool proves it. */
	struct torture t = { .begin = begin_spooling,
		.operation = put_all,
		.end = all_comes_out,
		.context = &s,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

static void begin_full(void *context)
{
	struct spooling *s = context;

	begin_spooling(s);
	assert_int_equal(put_all(s), 0);
}

static int send_first(void *context)
{
	struct spooling *s = context;
	struct payload payload;
	int err = spool_peek(s->spool, 0, &payload);

	if (err)
		return err;
	s->first = spool_fixture_check(&payload);
	payload_deinit(&payload);
	spool_begin(s->spool, 0);
	s->is_sent = true;
	return spool_advance(s->spool, 0);
}

static void the_others_come_out(void *context, int result)
{
	struct spooling *s = context;

	(void)result;
	assert_int_equal(put_all(s), 0);
	drain(s, 0, s->is_sent ? s->first + 1 : 0);
	drain(s, 1, 0);
	spool_destroy(s->spool);
	for (size_t i = 0; i < PAYLOADS; i++)
		payload_deinit(&s->payloads[i]);
	spool_fixture_deinit(&s->f);
}

static void a_sent_payload_is_sent_once(void **state)
{
	struct spooling s;
	struct torture t = { .begin = begin_full,
		.operation = send_first,
		.end = the_others_come_out,
		.context = &s,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

static void begin_closed(void *context)
{
	struct spooling *s = context;

	begin_full(s);
	spool_destroy(take(s->spool));
}

static int reopen(void *context)
{
	return open_spool(context);
}

/* A start that failed does no harm to what an earlier run left. */
static void all_is_still_there(void *context, int result)
{
	struct spooling *s = context;

	if (result)
		assert_null(s->spool);
	spool_destroy(take(s->spool));
	assert_int_equal(open_spool(s), 0);
	drain(s, 0, 0);
	drain(s, 1, 0);
	spool_destroy(s->spool);
	for (size_t i = 0; i < PAYLOADS; i++)
		payload_deinit(&s->payloads[i]);
	spool_fixture_deinit(&s->f);
}

static void a_start_that_failed_loses_nothing(void **state)
{
	struct spooling s;
	struct torture t = { .begin = begin_closed,
		.operation = reopen,
		.end = all_is_still_there,
		.context = &s,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

/* ---- what was refused ----------------------------------------------------------------------- */

enum {
	OLD_FILES = 6,
	OLD_FILE_BYTES = 40 << 20, /* the newest alone is over the limit */
};

static void old_file_path(const struct spooling *s, int number, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/rejected/%016x-%08x.txt", s->f.directory, 0, number);
}

static void begin_refused(void *context)
{
	struct spooling *s = context;
	struct payload payload;
	char path[PATH_MAX];

	begin_full(s);
	assert_int_equal(spool_peek(s->spool, 0, &payload), 0);
	payload_deinit(&payload);
	spool_begin(s->spool, 0);
	snprintf(path, sizeof(path), "%s/rejected", s->f.directory);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int i = 0; i < OLD_FILES; i++) {
		old_file_path(s, i, path);
		assert_int_equal(io_replace_file(AT_FDCWD, path, "x", 1, 0600), 0);
	}
	assert_int_equal(truncate(path, OLD_FILE_BYTES), 0);
}

static int refuse_first(void *context)
{
	struct spooling *s = context;

	return spool_reject(s->spool, 0, "status 400");
}

static void older_ones_are_gone_first(void *context, int result)
{
	struct spooling *s = context;
	bool is_kept = false;
	char path[PATH_MAX];

	(void)result;
	for (int i = 0; i < OLD_FILES; i++) {
		bool is_there;

		old_file_path(s, i, path);
		is_there = !access(path, F_OK);
		assert_true(is_there || !is_kept);
		is_kept |= is_there;
	}
	assert_true(torture_failed() || !is_kept);
	spool_destroy(s->spool);
	for (size_t i = 0; i < PAYLOADS; i++)
		payload_deinit(&s->payloads[i]);
	spool_fixture_deinit(&s->f);
}

static void the_oldest_refused_payloads_go_first(void **state)
{
	struct spooling s;
	struct torture t = { .begin = begin_refused,
		.operation = refuse_first,
		.end = older_ones_are_gone_first,
		.context = &s,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

/* ---- queue ---------------------------------------------------------------------------------- */

enum { STEPS = 40, ATTEMPTS_LIMIT = 16 };

struct queueing {
	struct spooling s;
	struct queue *queue;
	uint64_t now_ns;
	uint64_t attempts[ATTEMPTS_LIMIT]; /* the numbers that were sent */
	size_t attempt_count;
};

/* The first attempt does not arrive, each further one does. */
static int send_payload(void *context, size_t target, const struct payload *payload,
	remote_done_fn *done, void *done_context)
{
	struct queueing *q = context;
	struct remote_result result = { .verdict = q->attempt_count ? REMOTE_SENT : REMOTE_RETRY,
		.code = "200" };

	assert_int_equal(target, 0);
	assert_true(q->attempt_count < ATTEMPTS_LIMIT);
	q->attempts[q->attempt_count++] = spool_fixture_check(payload);
	done(done_context, &result);
	return 0;
}

static void begin_queueing(void *context)
{
	struct queueing *q = context;

	begin_full(&q->s);
	q->queue = NULL;
	q->now_ns = 1;
	q->attempt_count = 0;
}

static int send_all(void *context)
{
	struct queueing *q = context;
	static const struct queue_target only = { .name = "one" };
	const struct queue_options options = { .spool = q->s.spool,
		.targets = &only,
		.target_count = 1,
		.send = send_payload,
		.context = q };
	int err = q->queue ? 0 : queue_create(&options, &q->queue);

	for (int i = 0; !err && i < STEPS && spool_pending(q->s.spool, 0); i++) {
		uint64_t next_ns = queue_step(q->queue, q->now_ns);

		q->now_ns = next_ns == UINT64_MAX ? q->now_ns + 1 : next_ns;
	}
	return err;
}

/* In order, none missing, and none twice except the one that did not arrive. */
static void each_was_sent_once(void *context, int result)
{
	struct queueing *q = context;
	uint64_t dropped, next = 0;

	(void)result;
	assert_int_equal(send_all(q), 0);
	assert_int_equal(spool_pending(q->s.spool, 0), 0);
	dropped = spool_dropped(q->s.spool, 0, SPOOL_DROP_CORRUPT);
	assert_true(dropped == 0 || (failed_to("pread") && dropped == 1));
	for (size_t i = 1; i < q->attempt_count; i++) {
		assert_true(q->attempts[i] == next || (dropped && q->attempts[i] == next + 1));
		next = q->attempts[i] + 1;
	}
	assert_int_equal(q->attempt_count + dropped, PAYLOADS + 1);
	queue_destroy(q->queue);
	spool_destroy(q->s.spool);
	for (size_t i = 0; i < PAYLOADS; i++)
		payload_deinit(&q->s.payloads[i]);
	spool_fixture_deinit(&q->s.f);
}

static void the_queue_sends_each_payload_once(void **state)
{
	struct queueing q;
	struct torture t = { .begin = begin_queueing,
		.operation = send_all,
		.end = each_was_sent_once,
		.context = &q,
		.optional = "*" };

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(otlp_without_memory_says_so),
		torture_test(relabelling_fails_with_its_error),
		torture_test(payloads_in_the_spool_are_read_back),
		torture_test(a_sent_payload_is_sent_once),
		torture_test(a_start_that_failed_loses_nothing),
		torture_test(the_oldest_refused_payloads_go_first),
		torture_test(the_queue_sends_each_payload_once),
	};

	/* The queue logs each failure. */
	log_configure(LOG_ERROR, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
