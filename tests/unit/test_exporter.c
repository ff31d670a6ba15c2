/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The export thread, with directories as its remote stores: an existing one accepts everything, a
 * missing one is an unreachable server. Settings change meanwhile.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/server/export/exporter.h"
#include "base/cleanup.h"
#include "tests/unit/spool_fixture.h"

enum { SIZE = 1000, STORES = 3, WAIT_S = 120, PATH_BYTES = 120 };

static const char *const store_names[STORES] = { "a", "b", "c" };

struct bench {
	struct spool_fixture fixture;
	struct exporter *exporter;
	char stores[STORES][PATH_BYTES], spool[PATH_BYTES];
	struct remote_options remotes[STORES];
	struct exporter_options options;
	uint64_t put;
};

/* Sets the options to the stores whose letters are in WHICH, in that order. */
static void set_stores(struct bench *b, const char *which)
{
	b->options.remote_count = 0;
	for (; *which; which++) {
		size_t i = (size_t)(*which - 'a');

		b->remotes[b->options.remote_count++] = (struct remote_options){
			.type = REMOTE_FILE, .name = store_names[i], .address = b->stores[i]
		};
	}
}

static void store_is_there(const struct bench *b, char which)
{
	assert_int_equal(mkdir(b->stores[which - 'a'], 0700), 0);
}

static void path_of(const struct bench *b, const char *name, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%.63s/%s", b->fixture.directory, name);
}

static int set_up(void **state)
{
	static struct bench bench;
	struct bench *b = &bench;

	*b = (struct bench){ 0 };
	spool_fixture_init(&b->fixture);
	for (size_t i = 0; i < STORES; i++)
		path_of(b, store_names[i], b->stores[i]);
	path_of(b, "spool", b->spool);
	b->options = (struct exporter_options){
		.spool_directory = b->spool,
		.spool_limit_bytes = 1 << 20,
		.remotes = b->remotes,
		.metrics = &b->fixture.metrics,
	};
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bench *b = *state;

	exporter_destroy(b->exporter, 0);
	spool_fixture_deinit(&b->fixture);
	return 0;
}

static void begin(struct bench *b, const char *which)
{
	autofree char *message = NULL;

	set_stores(b, which);
	assert_int_equal(exporter_create(&b->options, &b->exporter, &message), 0);
}

static void change(struct bench *b, const char *which)
{
	autofree char *message = NULL;

	set_stores(b, which);
	assert_int_equal(exporter_change(b->exporter, &b->options, &message), 0);
	assert_null(message);
}

static void submit(struct bench *b, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		struct payload p;

		spool_fixture_payload(++b->put, SIZE, &p);
		exporter_submit(b->exporter, &p);
	}
}

static struct exporter_target_figures figures_of(struct bench *b, char which)
{
	struct exporter_figures f;

	exporter_figures(b->exporter, &f);
	for (size_t i = 0; i < f.target_count; i++) {
		if (f.targets[i].name[0] == which)
			return f.targets[i];
	}
	return (struct exporter_target_figures){ 0 };
}

/* Waits until WHICH has been sent SENT payloads and PENDING are queued for it. */
static void wait_for(struct bench *b, char which, uint64_t sent, uint64_t pending)
{
	struct exporter_target_figures f = { 0 };
	const struct timespec pause = { .tv_nsec = 5000000 };

	for (int i = 0; i < WAIT_S * 200; i++) {
		f = figures_of(b, which);
		if (f.queue.sent_payloads == sent && f.queue.pending == pending)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("%c was sent %llu, %llu wait for it", which,
		(unsigned long long)f.queue.sent_payloads, (unsigned long long)f.queue.pending);
}

static uint64_t metric(struct bench *b, enum metric id)
{
	return metrics_get(&b->fixture.metrics, id);
}

static void removing_a_store_repeats_nothing_to_another(void **state)
{
	struct bench *b = *state;

	store_is_there(b, 'b');
	begin(b, "ab");
	submit(b, 5);
	wait_for(b, 'b', 5, 0);
	wait_for(b, 'a', 0, 5);
	change(b, "b");
	submit(b, 1);
	wait_for(b, 'b', 6, 0);
	assert_int_equal(metric(b, METRIC_SPOOL_ABANDONED_STORE), 5);
}

static void removing_a_store_does_not_stop_another(void **state)
{
	struct bench *b = *state;

	store_is_there(b, 'a');
	begin(b, "ab");
	submit(b, 5);
	wait_for(b, 'a', 5, 0);
	wait_for(b, 'b', 0, 5);
	store_is_there(b, 'b');
	change(b, "cb");
	submit(b, 1);
	wait_for(b, 'b', 6, 0);
	/* A new store gets only later payloads. */
	wait_for(b, 'c', 0, 1);
	assert_int_equal(metric(b, METRIC_SPOOL_ABANDONED_STORE), 0);
}

static void assert_refused(struct bench *b, int err, const char *what)
{
	autofree char *message = NULL;

	assert_int_equal(exporter_change(b->exporter, &b->options, &message), err);
	assert_non_null(message);
	if (!strstr(message, what))
		fail_msg("%s", message);
}

static void a_spool_that_cannot_be_used_changes_nothing(void **state)
{
	struct bench *b = *state;
	char others[PATH_BYTES], below_a_file[PATH_BYTES];

	store_is_there(b, 'a');
	begin(b, "ab");
	submit(b, 2);
	wait_for(b, 'a', 2, 0);
	wait_for(b, 'b', 0, 2);
	path_of(b, "others", others);
	assert_int_equal(mkdir(others, 0700), 0);
	assert_int_equal(chmod(others, 0777), 0);
	set_stores(b, "a");
	b->options.spool_directory = others;
	assert_refused(b, -EPERM, "it must belong to you");
	path_of(b, "spool/version/below", below_a_file);
	b->options.spool_directory = below_a_file;
	assert_refused(b, -EROFS, "it cannot be created or opened");
	submit(b, 1);
	wait_for(b, 'a', 3, 0);
	wait_for(b, 'b', 0, 3);
}

static void another_directory_begins_empty_and_the_old_one_is_counted(void **state)
{
	struct bench *b = *state;
	char other[PATH_BYTES];

	store_is_there(b, 'a');
	begin(b, "ab");
	submit(b, 4);
	wait_for(b, 'a', 4, 0);
	wait_for(b, 'b', 0, 4);
	path_of(b, "other", other);
	b->options.spool_directory = other;
	store_is_there(b, 'b');
	change(b, "ab");
	submit(b, 1);
	wait_for(b, 'a', 5, 0);
	wait_for(b, 'b', 1, 0);
	assert_int_equal(metric(b, METRIC_SPOOL_ABANDONED_DIRECTORY), 4);
}

static void the_same_store_twice_is_refused(void **state)
{
	autofree char *message = NULL;
	struct bench *b = *state;

	store_is_there(b, 'a');
	begin(b, "a");
	set_stores(b, "ab");
	b->remotes[1].address = b->remotes[0].address;
	assert_refused(b, -EINVAL, "the remote stores a and b are the same one");
	submit(b, 1);
	wait_for(b, 'a', 1, 0);
	/* With different names they are two stores. */
	b->remotes[1].given_name = "b";
	assert_int_equal(exporter_change(b->exporter, &b->options, &message), 0);
	submit(b, 1);
	wait_for(b, 'a', 2, 0);
	wait_for(b, 'b', 1, 0);
}

static void a_profile_larger_than_the_spool_is_counted(void **state)
{
	struct bench *b = *state;

	store_is_there(b, 'a');
	b->options.spool_limit_bytes = SIZE / 2;
	begin(b, "a");
	submit(b, 3);
	b->options.spool_limit_bytes = 1 << 20;
	change(b, "a");
	submit(b, 1);
	wait_for(b, 'a', 1, 0);
	assert_int_equal(metric(b, METRIC_EXPORT_TOO_LARGE), 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(removing_a_store_repeats_nothing_to_another),
		CASE(removing_a_store_does_not_stop_another),
		CASE(a_spool_that_cannot_be_used_changes_nothing),
		CASE(another_directory_begins_empty_and_the_old_one_is_counted),
		CASE(the_same_store_twice_is_refused),
		CASE(a_profile_larger_than_the_spool_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
