/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeated kill -9 at random points, on one directory. A child puts payloads and, in the second
 * case, also takes them; it reports through a pipe what spool_put() acknowledged and what was
 * delivered (pipe writes of these sizes are atomic). The directory must agree with that: every
 * acknowledged payload exactly once, complete and in order, plus at most the one being put.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/spool_fixture.h"

enum {
	KILLS = 60,
	PUTS = 100, /* of a life that is not killed */
	MAX_NUMBER = 1 << 20,
	LIMIT = 256 << 20, /* nothing is dropped */
	MAX_DELAY_US = 3000,
};

static const char *const targets[] = { "one", NULL };

enum event_kind { PUT = 1, BEGUN, BEGUN_AGAIN, DELIVERED };

struct event {
	uint32_t kind, number;
};

struct ledger {
	uint8_t acknowledged[MAX_NUMBER];
	uint8_t delivered[MAX_NUMBER]; /* number of deliveries */
	uint8_t repeated[MAX_NUMBER]; /* how often spool_begin() reported a repetition */
	uint32_t highest;
	uint32_t worked; /* lives that have put at least one payload */
};

static struct ledger ledger;

static void tell(int fd, enum event_kind kind, uint64_t number)
{
	struct event e = { kind, (uint32_t)number };

	if (write(fd, &e, sizeof(e)) != sizeof(e))
		_exit(2);
}

static struct spool *open_spool(struct spool_fixture *f)
{
	struct spool_options options = spool_fixture_options(f, LIMIT, targets);
	struct spool *s = NULL;

	assert_int_equal(spool_create(&options, &s), 0);
	return s;
}

static void put(struct spool *s, uint32_t number, int fd)
{
	struct payload p;

	spool_fixture_payload(number, 200 + number % 7 * 900, &p);
	if (spool_put(s, &p))
		_exit(3);
	payload_deinit(&p);
	tell(fd, PUT, number);
}

/* The "server" is the pipe. */
static bool deliver(struct spool *s, int fd)
{
	struct payload p = { 0 };
	uint64_t number;
	int err = spool_peek(s, 0, &p);

	if (err == -ENOENT)
		return false;
	if (err)
		_exit(4);
	number = spool_fixture_check(&p);
	tell(fd, spool_begin(s, 0) ? BEGUN_AGAIN : BEGUN, number);
	tell(fd, DELIVERED, number);
	if (spool_advance(s, 0))
		_exit(5);
	payload_deinit(&p);
	return true;
}

static void child(struct spool_fixture *f, int fd, uint32_t next, bool takes)
{
	struct spool *s = open_spool(f);

	for (int i = 0; i < PUTS; i++, next++) {
		put(s, next, fd);
		if (takes && next % 3)
			deliver(s, fd);
	}
	for (;;)
		pause();
}

/* Reads one report; returns false at the end of the pipe. */
static bool take_down(int fd)
{
	struct event e;

	if (read(fd, &e, sizeof(e)) != sizeof(e))
		return false;
	assert_true(e.number < MAX_NUMBER);
	if (e.number > ledger.highest)
		ledger.highest = e.number;
	if (e.kind == PUT)
		ledger.acknowledged[e.number] = 1;
	else if (e.kind == BEGUN_AGAIN)
		ledger.repeated[e.number]++;
	else if (e.kind == DELIVERED)
		ledger.delivered[e.number]++;
	return true;
}

static void one_life(struct spool_fixture *f, uint32_t next, bool takes)
{
	struct timespec delay = { .tv_nsec = rand() % MAX_DELAY_US * 1000L };
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(fds[0]);
		child(f, fds[1], next, takes);
	}
	close(fds[1]);
	/* One in four may be killed while it opens the spool; the others have begun to work. */
	if (rand() % 4)
		ledger.worked += take_down(fds[0]);
	nanosleep(&delay, NULL);
	kill(pid, SIGKILL);
	while (take_down(fds[0]))
		;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void live_and_die(struct spool_fixture *f, bool takes)
{
	uint32_t next = 0;

	memset(&ledger, 0, sizeof(ledger));
	srand(spool_fixture_seed());
	for (int i = 0; i < KILLS; i++) {
		/*
		 * A number that may have been put without an acknowledgement is not used again,
		 * even if it was the first of its life.
		 */
		next = (next > ledger.highest ? next : ledger.highest) + 10;
		one_life(f, next, takes);
	}
}

static void killed_while_putting(void **state)
{
	struct spool_fixture f;
	uint32_t last = 0, found = 0, unacknowledged = 0, acknowledged = 0;
	struct payload p = { 0 };
	struct spool *s;

	(void)state;
	spool_fixture_init(&f);
	live_and_die(&f, false);
	s = open_spool(&f);
	while (!spool_peek(s, 0, &p)) {
		uint32_t number = (uint32_t)spool_fixture_check(&p);

		assert_true(number > last);
		last = number;
		found++;
		unacknowledged += !ledger.acknowledged[number];
		ledger.acknowledged[number] = 0;
		assert_int_equal(spool_advance(s, 0), 0);
		payload_deinit(&p);
	}
	for (uint32_t n = 0; n < MAX_NUMBER; n++)
		acknowledged += ledger.acknowledged[n];
	assert_int_equal(acknowledged, 0);
	assert_true(unacknowledged <= KILLS);
	assert_true(ledger.worked > 0 && found >= ledger.worked);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), 0);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_LIMIT), 0);
	spool_destroy(s);
	spool_fixture_deinit(&f);
}

static void killed_while_putting_and_taking(void **state)
{
	struct spool_fixture f;
	struct payload p = { 0 };
	struct spool *s;
	uint32_t delivered = 0;

	(void)state;
	spool_fixture_init(&f);
	live_and_die(&f, true);
	s = open_spool(&f);
	while (!spool_peek(s, 0, &p)) {
		uint32_t number = (uint32_t)spool_fixture_check(&p);

		ledger.repeated[number] += spool_begin(s, 0);
		ledger.delivered[number]++;
		assert_int_equal(spool_advance(s, 0), 0);
		payload_deinit(&p);
	}
	for (uint32_t n = 0; n < MAX_NUMBER; n++) {
		if (ledger.acknowledged[n] && !ledger.delivered[n])
			fail_msg("%u was acknowledged and lost", n);
		if (ledger.delivered[n] > 1 + ledger.repeated[n])
			fail_msg("%u came %u times, %u said to be repeated", n, ledger.delivered[n],
				ledger.repeated[n]);
		delivered += ledger.delivered[n];
	}
	assert_true(ledger.worked > 0 && delivered >= ledger.worked);
	assert_int_equal(spool_dropped(s, 0, SPOOL_DROP_CORRUPT), 0);
	spool_destroy(s);
	spool_fixture_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_while_putting),
		cmocka_unit_test(killed_while_putting_and_taking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
