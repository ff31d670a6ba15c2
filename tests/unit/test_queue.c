/* SPDX-License-Identifier: Apache-2.0 */
/* The send queue with the test's own sender and clock, on a real spool. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/server/export/pace.h"
#include "agent/server/export/queue.h"
#include "tests/unit/refused_call.h"
#include "tests/unit/spool_fixture.h"

enum { LIMIT = 16 << 20, MAX_SENT = 1000, TARGETS = 2 };

static const uint64_t MS = 1000000, SECOND = 1000000000;

struct bench {
	struct spool_fixture fixture;
	struct spool *spool;
	struct queue *queue;
	uint64_t now, next;
	struct {
		remote_done_fn *done; /* NULL = nothing is being sent */
		void *context;
		uint64_t number;
	} line[TARGETS];
};

static const char *const names[] = { "one", "two", NULL };

static int send(void *context, size_t target, const struct payload *payload, remote_done_fn *done,
	void *done_context)
{
	struct bench *b = context;

	assert_null(b->line[target].done);
	b->line[target].number = spool_fixture_check(payload);
	b->line[target].done = done;
	b->line[target].context = done_context;
	return 0;
}

static void begin_limited(struct bench *b, size_t targets, bool paced, uint64_t limit_bytes)
{
	static const char *const only[] = { "one", NULL };
	struct queue_target list[] = { { "one", paced }, { "two", false } };
	struct spool_options options =
		spool_fixture_options(&b->fixture, limit_bytes, targets == 1 ? only : names);
	struct queue_options queue_options = {
		.targets = list,
		.target_count = targets,
		.seed = 42,
		.send = send,
		.context = b,
	};

	assert_int_equal(spool_create(&options, &b->spool), 0);
	queue_options.spool = b->spool;
	assert_int_equal(queue_create(&queue_options, &b->queue), 0);
}

static void begin(struct bench *b, size_t targets, bool paced)
{
	begin_limited(b, targets, paced, LIMIT);
}

static void end(struct bench *b)
{
	queue_destroy(b->queue);
	spool_destroy(b->spool);
	memset(b->line, 0, sizeof(b->line));
}

static int set_up(void **state)
{
	static struct bench bench;

	bench = (struct bench){ .now = 1000 * SECOND };
	spool_fixture_init(&bench.fixture);
	*state = &bench;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	end(b);
	spool_fixture_deinit(&b->fixture);
	return 0;
}

static void put(struct bench *b, uint64_t number, size_t size)
{
	struct payload p;

	spool_fixture_payload(number, size, &p);
	assert_int_equal(spool_put(b->spool, &p), 0);
	payload_deinit(&p);
}

/* Runs a step; returns what is being sent to TARGET, 0 = nothing. */
static uint64_t sending(struct bench *b, size_t target)
{
	(void)queue_step(b->queue, b->now);
	return b->line[target].done ? b->line[target].number : 0;
}

static void answer(struct bench *b, size_t target, enum remote_verdict verdict, const char *code,
	uint64_t retry_after_ns)
{
	struct remote_result result = {
		.verdict = verdict,
		.message = "as the test wants",
		.blurred = verdict == REMOTE_RETRY && !strcmp(code, "500"),
		.retry_after_ns = retry_after_ns,
		.sent_bytes = 100,
	};
	remote_done_fn *done = b->line[target].done;

	assert_non_null(done);
	snprintf(result.code, sizeof(result.code), "%s", code);
	b->line[target].done = NULL;
	done(b->line[target].context, &result);
}

/* Advances the clock until something is sent to target 0; returns how long that took. */
static uint64_t until_sent(struct bench *b)
{
	uint64_t start = b->now;

	while (!sending(b, 0)) {
		uint64_t next = queue_step(b->queue, b->now);

		assert_true(next > b->now && next != UINT64_MAX);
		b->now = next;
	}
	return b->now - start;
}

static struct queue_figures figures(struct bench *b, size_t target)
{
	struct queue_figures f;

	queue_figures(b->queue, target, &f);
	return f;
}

static void one_after_the_other_to_each(void **state)
{
	struct bench *b = *state;

	begin(b, 2, false);
	assert_int_equal(sending(b, 0), 0);
	for (uint64_t n = 1; n <= 5; n++)
		put(b, n, 100);
	for (uint64_t n = 1; n <= 5; n++) {
		assert_int_equal(sending(b, 0), n);
		assert_int_equal(sending(b, 1), 1);
		answer(b, 0, REMOTE_SENT, "200", 0);
	}
	assert_int_equal(sending(b, 0), 0);
	/* The slow target loses nothing. */
	for (uint64_t n = 1; n <= 5; n++) {
		assert_int_equal(sending(b, 1), n);
		answer(b, 1, REMOTE_SENT, "200", 0);
	}
	assert_int_equal(sending(b, 1), 0);
	assert_int_equal(figures(b, 0).sent_bytes, 500);
	assert_int_equal(figures(b, 0).code_count, 1);
	assert_string_equal(figures(b, 0).codes[0].code, "200");
	assert_int_equal(figures(b, 0).codes[0].count, 5);
	assert_int_equal(figures(b, 1).repeated, 0);
	assert_false(queue_busy(b->queue, b->now));
}

static void failures_wait_longer_each_time(void **state)
{
	struct bench *b = *state;
	uint64_t expected = 500 * MS;

	begin(b, 1, false);
	put(b, 1, 100);
	for (int i = 0; i < 14; i++) {
		uint64_t waited;

		assert_int_equal(sending(b, 0), 1);
		answer(b, 0, REMOTE_RETRY, "refused", 0);
		waited = until_sent(b);
		assert_true(waited >= expected / 2 && waited <= expected);
		expected = expected * 2 > 300 * SECOND ? 300 * SECOND : expected * 2;
	}
	answer(b, 0, REMOTE_SENT, "200", 0);
	put(b, 2, 100);
	assert_int_equal(sending(b, 0), 2);
	answer(b, 0, REMOTE_RETRY, "503", 0);
	assert_true(until_sent(b) <= 500 * MS);
	assert_int_equal(figures(b, 0).repeated, 0);
	assert_true(figures(b, 0).failing);
}

static void the_server_may_ask_for_time(void **state)
{
	struct bench *b = *state;

	begin(b, 1, false);
	put(b, 1, 100);
	assert_int_equal(sending(b, 0), 1);
	answer(b, 0, REMOTE_RETRY, "429", 120 * SECOND);
	assert_int_equal(until_sent(b), 120 * SECOND);
	answer(b, 0, REMOTE_RETRY, "429", UINT64_MAX);
	assert_int_equal(until_sent(b), 3600 * SECOND);
}

static void wrong_credentials_are_tried_slowly_and_cost_nothing(void **state)
{
	struct bench *b = *state;
	uint64_t waited;

	begin(b, 1, false);
	put(b, 1, 100);
	assert_int_equal(sending(b, 0), 1);
	answer(b, 0, REMOTE_DENIED, "401", 0);
	waited = until_sent(b);
	assert_true(waited >= 15 * SECOND && waited <= 30 * SECOND);
	assert_int_equal(b->line[0].number, 1);
	answer(b, 0, REMOTE_SENT, "200", 0);
	assert_int_equal(sending(b, 0), 0);
}

static void a_refused_payload_is_set_aside(void **state)
{
	struct bench *b = *state;

	begin(b, 1, false);
	for (uint64_t n = 1; n <= 3; n++)
		put(b, n, 100);
	assert_int_equal(sending(b, 0), 1);
	answer(b, 0, REMOTE_REFUSED, "400", 0);
	assert_int_equal(sending(b, 0), 2);
	answer(b, 0, REMOTE_SENT, "200", 0);
	assert_int_equal(sending(b, 0), 3);
	assert_int_equal(figures(b, 0).refused, 1);
}

static void what_is_in_doubt_is_counted_when_repeated(void **state)
{
	struct bench *b = *state;

	begin(b, 1, false);
	put(b, 1, 100);
	assert_int_equal(sending(b, 0), 1);
	answer(b, 0, REMOTE_AMBIGUOUS, "timeout", 0);
	assert_int_equal(figures(b, 0).repeated, 0);
	until_sent(b);
	/* This attempt did not arrive, so it repeats nothing. */
	answer(b, 0, REMOTE_RETRY, "503", 0);
	until_sent(b);
	assert_int_equal(figures(b, 0).repeated, 0);
	answer(b, 0, REMOTE_SENT, "200", 0);
	put(b, 2, 100);
	assert_int_equal(sending(b, 0), 2);
	assert_int_equal(figures(b, 0).repeated, 1);
	/* A new run cannot know that payload 2 is repeated. */
	end(b);
	begin(b, 1, false);
	assert_int_equal(sending(b, 0), 2);
	answer(b, 0, REMOTE_SENT, "200", 0);
	assert_int_equal(sending(b, 0), 0);
	assert_int_equal(figures(b, 0).repeated, 1);
}

static void a_poisonous_payload_does_not_block(void **state)
{
	struct bench *b = *state;
	int attempts = 0;
	uint64_t last = 0;

	begin(b, 1, false);
	for (uint64_t n = 1; n <= 4; n++)
		put(b, n, 100);
	/* The server always answers the first payload with 500. */
	while (last != 4 && attempts++ < 100) {
		until_sent(b);
		if (b->line[0].number != 1)
			last = b->line[0].number;
		b->line[0].number == 1 ? answer(b, 0, REMOTE_RETRY, "500", 0)
				       : answer(b, 0, REMOTE_SENT, "200", 0);
	}
	assert_true(attempts < 15);
	assert_int_equal(sending(b, 0), 0);
	assert_int_equal(figures(b, 0).poisonous, 1);
	assert_int_equal(figures(b, 0).sent_payloads, 3);
	assert_int_equal(figures(b, 0).repeated, 0);
	assert_int_equal(figures(b, 0).pending, 0);
}

static void the_next_payload_does_not_inherit_failures(void **state)
{
	struct bench *b = *state;

	begin_limited(b, 1, false, 64 << 10);
	put(b, 1, 1000);
	put(b, 2, 1000);
	/* After a later payload is accepted, one more failure of the first is enough. */
	for (int i = 0; i < 6; i++) {
		until_sent(b);
		assert_int_equal(b->line[0].number, 1);
		answer(b, 0, REMOTE_RETRY, "500", 0);
	}
	until_sent(b);
	assert_int_equal(b->line[0].number, 2);
	answer(b, 0, REMOTE_SENT, "200", 0);
	/* Before that failure, the spool drops the first payload. */
	for (uint64_t n = 3; n <= 100; n++)
		put(b, n, 1000);
	for (int i = 0; i < 5; i++) {
		until_sent(b);
		assert_in_range(b->line[0].number, 3, 99);
		answer(b, 0, REMOTE_RETRY, "500", 0);
	}
	until_sent(b);
	assert_int_equal(figures(b, 0).poisonous, 0);
}

static void a_broken_server_poisons_nothing(void **state)
{
	struct bench *b = *state;
	uint64_t next = 1;

	begin(b, 1, false);
	for (uint64_t n = 1; n <= 4; n++)
		put(b, n, 100);
	for (int i = 0; i < 40; i++) {
		until_sent(b);
		answer(b, 0, i % 2 ? REMOTE_RETRY : REMOTE_AMBIGUOUS, "500", 0);
	}
	/* The server works again: all payloads arrive; only the one tried ahead is out of order. */
	while (figures(b, 0).pending) {
		until_sent(b);
		answer(b, 0, REMOTE_SENT, "200", 0);
		(void)queue_step(b->queue, b->now);
		next++;
	}
	assert_int_equal(next, 5);
	assert_int_equal(figures(b, 0).poisonous, 0);
	assert_int_equal(figures(b, 0).sent_payloads, 4);
}

static void a_lonely_payload_is_never_given_up(void **state)
{
	struct bench *b = *state;

	begin(b, 1, false);
	put(b, 1, 100);
	for (int i = 0; i < 30; i++) {
		until_sent(b);
		assert_int_equal(b->line[0].number, 1);
		answer(b, 0, REMOTE_RETRY, "500", 0);
	}
	assert_int_equal(figures(b, 0).poisonous, 0);
	assert_int_equal(figures(b, 0).pending, 1);
}

static int step(void *context)
{
	struct bench *b = context;

	b->next = queue_step(b->queue, b->now);
	return 0;
}

/* A payload on the disk is not lost because its file cannot be opened for a moment. */
static void a_disk_that_gives_nothing_is_asked_again_later(void **state)
{
	static const struct refused_call no_descriptors = { .number = SYS_openat, .error = EMFILE };
	struct bench *b = *state;

	begin(b, 1, false);
	put(b, 1, 1000);
	with_refused_call(&no_descriptors, step, b);
	assert_null(b->line[0].done);
	assert_in_range(b->next, b->now + 5 * SECOND, b->now + 60 * SECOND);
	b->now = b->next - 1;
	assert_int_equal(sending(b, 0), 0);
	b->now++;
	assert_int_equal(sending(b, 0), 1);
	assert_int_equal(spool_dropped(b->spool, 0, SPOOL_DROP_CORRUPT), 0);
	answer(b, 0, REMOTE_SENT, "200", 0);
	assert_int_equal(sending(b, 0), 0);
}

static void a_paced_target_has_a_rate(void **state)
{
	struct bench *b = *state;
	uint64_t start = b->now, bytes = 0;

	begin(b, 1, true);
	/* The fixture's payloads say that they are three times as large uncompressed. */
	for (uint64_t n = 1; n <= 40; n++)
		put(b, n, 100000);
	for (uint64_t n = 1; n <= 40; n++) {
		until_sent(b);
		bytes += 300000;
		answer(b, 0, REMOTE_SENT, "200", 0);
		assert_true(
			(double)bytes <=
			PACE_BURST_BYTES + PACE_RATE_BYTES * ((double)(b->now - start) / 1e9) + 1);
	}
	assert_true(b->now - start > 2 * SECOND && b->now - start < 4 * SECOND);
}

static void too_many_requests_slow_it_down(void **state)
{
	struct pace p;
	uint64_t now = SECOND, before, after;

	(void)state;
	pace_init(&p, true, now);
	assert_int_equal(pace_take(&p, PACE_BURST_BYTES, now), 0);
	before = pace_take(&p, 400000, now);
	pace_too_fast(&p);
	after = pace_take(&p, 400000, now);
	assert_true(after >= 2 * before - 10 && before >= 100 * MS - 10);
	for (int i = 0; i < 100; i++)
		pace_too_fast(&p);
	assert_true(pace_take(&p, 400000, now) < 20 * SECOND);
	for (int i = 0; i < 200; i++)
		pace_went_well(&p);
	assert_int_equal(pace_take(&p, 400000, now), before);
	/* A payload larger than any burst waits for a full bucket. */
	now += 10 * SECOND;
	assert_int_equal(pace_take(&p, 3 * PACE_BURST_BYTES, now), 0);
	assert_true(pace_take(&p, 1, now) > SECOND / 2);
}

/* One attempt that fails with CODE. */
static void fail_with(struct bench *b, const char *code)
{
	b->now += 3600 * SECOND;
	assert_int_equal(sending(b, 0), 1);
	answer(b, 0, REMOTE_RETRY, code, 0);
	(void)queue_step(b->queue, b->now);
}

/* How often the log in FD reports CODE. */
static size_t count_told(int fd, const char *code)
{
	char text[8192] = "", wanted[32];
	size_t count = 0;

	assert_true(pread(fd, text, sizeof(text) - 1, 0) >= 0);
	snprintf(wanted, sizeof(wanted), "code=%s ", code);
	for (const char *at = text; (at = strstr(at, wanted)); at++)
		count++;
	return count;
}

/* A server goes away, and its certificate is invalid when it is back: both are reported. */
static void each_kind_of_failure_is_told_once(void **state)
{
	static const char *const codes[] = { "connect", "timeout", "connect", "certificate",
		"timeout", "certificate" };
	int log = memfd_create("log", MFD_CLOEXEC), before = dup(STDERR_FILENO);
	struct bench *b = *state;

	begin(b, 1, false);
	put(b, 1, 100);
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		fail_with(b, codes[i]);
	b->now += 3600 * SECOND;
	assert_int_equal(sending(b, 0), 1);
	answer(b, 0, REMOTE_SENT, "200", 0);
	put(b, 1, 100);
	fail_with(b, "connect");
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(count_told(log, "timeout"), 1);
	assert_int_equal(count_told(log, "certificate"), 1);
	assert_int_equal(count_told(log, "connect"), 2);
	close(before);
	close(log);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_kind_of_failure_is_told_once),
		CASE(one_after_the_other_to_each),
		CASE(failures_wait_longer_each_time),
		CASE(the_server_may_ask_for_time),
		CASE(wrong_credentials_are_tried_slowly_and_cost_nothing),
		CASE(a_refused_payload_is_set_aside),
		CASE(what_is_in_doubt_is_counted_when_repeated),
		CASE(a_poisonous_payload_does_not_block),
		CASE(the_next_payload_does_not_inherit_failures),
		CASE(a_broken_server_poisons_nothing),
		CASE(a_lonely_payload_is_never_given_up),
		CASE(a_disk_that_gives_nothing_is_asked_again_later),
		CASE(a_paced_target_has_a_rate),
		cmocka_unit_test(too_many_requests_slow_it_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
