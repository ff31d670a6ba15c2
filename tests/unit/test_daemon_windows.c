/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of `fathom agent`: how they end, what is stored of them, and what is logged. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/daemon/daemon_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/gzip.h"
#include "tests/unit/fake_sampler.h"
#include "tests/unit/remove_tree.h"

enum { BLOCK = 4096, PLENTY = 1 << 20 };

static const uint64_t SECOND = 1000000000;

struct bench {
	struct sampler sampler;
	struct daemon daemon;
	char directory[64];
	char log[4096]; /* of the last logged() */
};

static void open_store(struct bench *b, uint64_t limit_bytes)
{
	const struct store_options options = { .directory = b->directory,
		.limit_bytes = limit_bytes,
		.now = { (int64_t)clock_real_ns(), clock_boot_ns() },
		.metrics = &b->sampler.metrics };

	assert_int_equal(store_create(&options, &b->daemon.store), 0);
}

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct daemon *d = &b->daemon;
	autofree char *message = NULL;
	char *argv[] = { (char *)"agent", NULL };
	void *world;

	assert_int_equal(report_setup(&world), 0);
	b->sampler.world = world;
	snprintf(b->directory, sizeof(b->directory), "/tmp/fathom-windows-XXXXXX");
	assert_non_null(mkdtemp(b->directory));
	d->sampler = &b->sampler;
	d->window_timer = d->frequency_timer = d->budget_timer = d->clock_fd = -1;
	d->settings.window_ns = 3600 * SECOND;
	b->sampler.window = (struct sealed_window){
		.number = 1,
		.began_ns = clock_monotonic_ns(),
		.began_real_ns = clock_real_ns(),
		.period = 52631578,
		.types = sample_types_of(false, false),
		.profile = b->sampler.world->profile,
		.processes = &b->sampler.world->described,
		.anon_module = processes_anon_module(b->sampler.world->processes),
	};
	budget_init(&d->budget, 0, 19);
	assert_int_equal(config_parse(&d->config, IN_AGENT, 1, argv), 0);
	assert_int_equal(
		daemon_probes_create(&d->config, &b->sampler.metrics, &d->probes, &message), 0);
	assert_int_equal(loop_create(&d->loop), 0);
	assert_int_equal(daemon_start_windows(d), 0);
	open_store(b, PLENTY);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;
	void *world = b->sampler.world;

	store_destroy(b->daemon.store);
	daemon_nameless_deinit(&b->daemon);
	daemon_probes_destroy(b->daemon.probes);
	loop_destroy(b->daemon.loop);
	config_deinit(&b->daemon.config);
	report_teardown(&world);
	(void)umount2(b->directory, MNT_DETACH); /* of a test that failed */
	remove_tree(b->directory);
	free(b);
	return 0;
}

/* Runs FN and returns what it logged. */
static const char *logged(struct bench *b, void (*fn)(struct bench *b))
{
	autoclose int fd = memfd_create("log", MFD_CLOEXEC);
	autoclose int before = dup(STDERR_FILENO);
	ssize_t size;

	assert_true(fd >= 0 && before >= 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	fn(b);
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	size = pread(fd, b->log, sizeof(b->log) - 1, 0);
	b->log[MAX(size, 0)] = 0;
	return b->log;
}

static void sample(struct bench *b, struct process *p)
{
	struct profile_frame frame = in_program(MAIN, 0, b->sampler.world);

	add_user(b->sampler.world, p, &frame, 1);
}

/* A window ends and is sealed, which the agent does a moment later. */
static void seal(struct bench *b)
{
	daemon_full(&b->daemon);
	daemon_sealed(&b->daemon, &b->sampler.sealed);
}

static size_t stored(const struct bench *b)
{
	return store_count(b->daemon.store);
}

/* Whether each stored profile has TEXT in it; there is at least one. */
static bool all_say(const struct bench *b, const char *text)
{
	struct store_file file;
	size_t iterator = 0, seen = 0;

	while (store_next(b->daemon.store, &iterator, 0, INT64_MAX, &file)) {
		autoclose int fd = -1;
		autocall(buffer_deinit) struct buffer plain;
		char packed[BLOCK];
		ssize_t size;

		assert_int_equal(store_open(b->daemon.store, file.path, &fd), 0);
		size = read(fd, packed, sizeof(packed));
		assert_in_range(size, 1, sizeof(packed) - 1);
		buffer_init(&plain, PLENTY);
		assert_int_equal(gzip_inflate(packed, (size_t)size, &plain), 0);
		if (!memmem(plain.bytes, plain.size, text, strlen(text)))
			return false;
		seen++;
	}
	assert_true(seen);
	return true;
}

/* ---- storing -------------------------------------------------------------------------------- */

static void a_window_is_one_file(void **state)
{
	struct bench *b = *state;
	struct daemon *d = &b->daemon;
	uint64_t started = b->sampler.window.began_real_ns;
	struct store_file file;
	size_t iterator = 0;

	sample(b, b->sampler.world->one);
	sample(b, b->sampler.world->two);
	b->sampler.window.began_ns -= 7 * SECOND;
	seal(b);
	assert_int_equal(d->windows, 1);
	assert_int_equal(stored(b), 1);
	assert_true(all_say(b, "fathom_group"));
	assert_true(all_say(b, "one"));
	assert_true(all_say(b, "two"));
	while (store_next(d->store, &iterator, 0, INT64_MAX, &file)) {
		assert_string_equal(file.name, "");
		assert_in_range(file.time_ns, started - SECOND / 10, started + SECOND / 10);
		assert_true(file.duration_ns >= (int64_t)(7 * SECOND));
	}
}

static void a_window_without_samples_makes_no_file(void **state)
{
	struct bench *b = *state;

	seal(b);
	assert_int_equal(b->daemon.windows, 1);
	assert_int_equal(stored(b), 0);
}

static void without_a_store_windows_are_counted(void **state)
{
	struct bench *b = *state;

	store_destroy(take(b->daemon.store));
	sample(b, b->sampler.world->one);
	seal(b);
	assert_int_equal(b->daemon.windows, 1);
}

static void the_last_window_is_stored_at_the_end(void **state)
{
	struct bench *b = *state;

	sample(b, b->sampler.world->one);
	daemon_seal_last(&b->daemon);
	assert_int_equal(stored(b), 1);
	assert_int_equal(b->daemon.windows, 1);
}

static void a_failing_store_is_logged_once(void **state)
{
	struct bench *b = *state;

	sample(b, b->sampler.world->one);
	sample(b, b->sampler.world->two);
	store_set_limits(b->daemon.store, BLOCK - 1, 0);
	assert_non_null(strstr(logged(b, seal), "could not be stored, ignoring\" error="));
	assert_int_equal(b->daemon.store_error, -E2BIG);
	assert_string_equal(logged(b, seal), "");
	assert_int_equal(metrics_get(&b->sampler.metrics, METRIC_STORE_FAILED), 2);
	store_set_limits(b->daemon.store, PLENTY, 0);
	assert_non_null(strstr(logged(b, seal), "profiles are stored again"));
	assert_int_equal(b->daemon.store_error, 0);
	assert_string_equal(logged(b, seal), "");
}

static void empty_store(struct bench *b)
{
	store_set_limits(b->daemon.store, 1, 0);
	daemon_trim_store(&b->daemon);
	store_set_limits(b->daemon.store, PLENTY, 0);
	assert_int_equal(stored(b), 0);
}

/* Each loss stands in the profiles of one window, also if that window could not be stored at first.
 */
static void lost_samples_stand_in_the_profiles_of_their_window(void **state)
{
	struct bench *b = *state;

	sample(b, b->sampler.world->one);
	sample(b, b->sampler.world->two);
	seal(b);
	assert_false(all_say(b, "samples lost"));
	empty_store(b);
	metrics_add(&b->sampler.metrics, METRIC_LOST_MEMORY_LIMIT, 41);
	store_set_limits(b->daemon.store, BLOCK - 1, 0);
	seal(b);
	store_set_limits(b->daemon.store, PLENTY, 0);
	metrics_add(&b->sampler.metrics, METRIC_LOST_MEMORY_LIMIT, 1);
	seal(b);
	assert_true(all_say(b, "samples lost since the window before: 42"));
	empty_store(b);
	seal(b);
	assert_false(all_say(b, "samples lost"));
}

static void fill(const char *path)
{
	static const char bytes[BLOCK];
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
}

/* Old profiles are removed for new ones; a full disk is logged when it begins and ends. */
static void a_full_disk_is_logged_once(void **state)
{
	struct bench *b = *state;
	char path[128];

	store_destroy(take(b->daemon.store));
	if (mount("test", b->directory, "tmpfs", 0, "size=128k,mode=0700")) {
		open_store(b, PLENTY);
		skip();
	}
	open_store(b, PLENTY);
	sample(b, b->sampler.world->one);
	for (int i = 0; i < 4; i++)
		assert_string_equal(logged(b, seal), "");
	assert_false(b->daemon.disk_full);
	snprintf(path, sizeof(path), "%s/of-somebody-else", b->directory);
	fill(path);
	assert_non_null(strstr(logged(b, seal), "the disk of the local store is full"));
	assert_non_null(strstr(b->log, "count=1"));
	assert_true(b->daemon.disk_full);
	assert_string_equal(logged(b, seal), "");
	assert_true(b->daemon.disk_full);
	assert_int_equal(unlink(path), 0);
	assert_non_null(strstr(logged(b, seal), "has space again"));
	assert_false(b->daemon.disk_full);
	assert_string_equal(logged(b, seal), "");
	store_destroy(take(b->daemon.store));
	assert_int_equal(umount2(b->directory, MNT_DETACH), 0);
	open_store(b, PLENTY);
}

static void trim(struct bench *b)
{
	daemon_trim_store(&b->daemon);
}

/* Puts an old profile into the store, and a directory in its place. */
static void put_what_cannot_be_removed(struct bench *b, const char *name)
{
	char path[sizeof(b->directory) + STORE_PATH_BYTES];
	struct store_file file;
	size_t iterator = 0;

	assert_int_equal(
		store_put(b->daemon.store, name, (int64_t)SECOND, (int64_t)SECOND, "x", 1), 0);
	assert_true(store_next(b->daemon.store, &iterator, 0, INT64_MAX, &file));
	snprintf(path, sizeof(path), "%s/%s", b->directory, file.path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void an_old_profile_that_cannot_be_removed_is_logged_once(void **state)
{
	struct bench *b = *state;

	store_set_limits(b->daemon.store, PLENTY, 3600 * SECOND);
	put_what_cannot_be_removed(b, "a");
	assert_non_null(strstr(logged(b, trim), "could not be removed, ignoring"));
	put_what_cannot_be_removed(b, "b");
	assert_string_equal(logged(b, trim), "");
	assert_string_equal(logged(b, trim), "");
	assert_int_equal(b->daemon.store_removal_error, 0);
	put_what_cannot_be_removed(b, "c");
	assert_non_null(strstr(logged(b, trim), "could not be removed, ignoring"));
}

static void each_window_begins_with_the_old_profiles(void **state)
{
	struct bench *b = *state;

	store_set_limits(b->daemon.store, PLENTY, 3600 * SECOND);
	assert_int_equal(
		store_put(b->daemon.store, "old", (int64_t)SECOND, (int64_t)SECOND, "x", 1), 0);
	seal(b);
	assert_int_equal(stored(b), 0);
}

static void the_cost_of_a_window_is_measured(void **state)
{
	struct bench *b = *state;

	sample(b, b->sampler.world->one);
	seal(b);
	assert_in_range(b->daemon.last_seal_ns, 1, 10 * SECOND);
}

/* ---- ending --------------------------------------------------------------------------------- */

static void stop(void *context)
{
	loop_stop(context);
}

/* Runs the timers that are due within TIME_NS. */
static void run_for(struct bench *b, uint64_t time_ns)
{
	int timer;

	assert_int_equal(loop_timer(b->daemon.loop, time_ns, 0, stop, b->daemon.loop, &timer), 0);
	assert_int_equal(loop_run(b->daemon.loop), 0);
}

static void full(struct bench *b)
{
	daemon_full(&b->daemon);
}

static void a_window_that_cannot_end_goes_on(void **state)
{
	struct bench *b = *state;
	b->sampler.rotate_error = -ENOMEM;
	assert_non_null(strstr(logged(b, full), "a window could not be ended"));
	assert_string_equal(logged(b, full), "");
	assert_int_equal(b->sampler.window.number, 1);
	assert_int_equal(b->sampler.rotations, 2);
	b->sampler.rotate_error = 0;
	assert_non_null(strstr(logged(b, full), "windows end again"));
	assert_int_equal(b->sampler.window.number, 2);
}

/* The retry comes a second later, not at the next round time. */
static void a_window_that_cannot_end_is_ended_soon(void **state)
{
	struct bench *b = *state;

	b->sampler.rotate_error = -ENOMEM;
	logged(b, full);
	b->sampler.rotate_error = 0;
	while (b->sampler.window.number == 1)
		run_for(b, SECOND / 10);
	assert_int_equal(b->sampler.rotations, 2);
	assert_int_equal(b->daemon.window_error, 0);
}

/* At the next hour, or the one after. */
static void a_window_that_ends_early_is_followed_by_one_to_a_round_time(void **state)
{
	struct bench *b = *state;
	uint64_t now = clock_monotonic_ns(), left;

	b->daemon.window_due_ns = 0;
	full(b);
	assert_true(b->daemon.window_due_ns > now);
	left = b->daemon.window_due_ns - now + clock_real_ns();
	assert_true(left % (3600 * SECOND) < SECOND || left % (3600 * SECOND) > 3599 * SECOND);
}

/* ---- frequency ------------------------------------------------------------------------------ */

static void each_frequency_has_its_own_window(void **state)
{
	struct bench *b = *state;
	struct daemon *d = &b->daemon;

	budget_init(&d->budget, 0, 100);
	daemon_set_frequency(d);
	assert_int_equal(b->sampler.rotations, 1);
	assert_int_equal(b->sampler.hz, 100);
	/* Sampling is paused in between and resumes afterwards. */
	assert_int_equal(b->sampler.pauses, 1);
	assert_false(
		b->sampler.rotated_unpaused || b->sampler.retimed_unpaused || b->sampler.paused);
}

static void a_frequency_waits_for_the_window_before(void **state)
{
	struct bench *b = *state;
	struct daemon *d = &b->daemon;

	budget_init(&d->budget, 0, 100);
	b->sampler.rotate_error = -EBUSY;
	daemon_set_frequency(d);
	assert_int_equal(b->sampler.hz, 0);
	assert_false(b->sampler.paused);
	assert_true(d->frequency_timer >= 0);
	b->sampler.rotate_error = 0;
	while (d->frequency_timer >= 0)
		run_for(b, SECOND / 100);
	assert_int_equal(b->sampler.hz, 100);
}

static void set_frequency(struct bench *b)
{
	daemon_set_frequency(&b->daemon);
}

static void a_rejected_frequency_is_logged(void **state)
{
	struct bench *b = *state;

	b->sampler.hz_error = -EIO;
	assert_non_null(strstr(logged(b, set_frequency), "could not be changed"));
	b->sampler.hz_error = 0;
	assert_string_equal(logged(b, set_frequency), "");
	b->sampler.rotate_error = -ENOMEM;
	assert_non_null(strstr(logged(b, set_frequency), "could not be changed"));
}

static void a_lost_cpu_is_logged(void **state)
{
	struct bench *b = *state;

	b->sampler.pause_error = -ENODEV;
	assert_non_null(strstr(logged(b, set_frequency), "a CPU is no longer sampled"));
	b->sampler.pause_error = 0;
	assert_string_equal(logged(b, set_frequency), "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_window_is_one_file),
		CASE(a_window_without_samples_makes_no_file),
		CASE(without_a_store_windows_are_counted),
		CASE(the_last_window_is_stored_at_the_end),
		CASE(a_failing_store_is_logged_once),
		CASE(lost_samples_stand_in_the_profiles_of_their_window),
		CASE(a_full_disk_is_logged_once),
		CASE(an_old_profile_that_cannot_be_removed_is_logged_once),
		CASE(each_window_begins_with_the_old_profiles),
		CASE(the_cost_of_a_window_is_measured),
		CASE(a_window_that_cannot_end_goes_on),
		CASE(a_window_that_cannot_end_is_ended_soon),
		CASE(a_window_that_ends_early_is_followed_by_one_to_a_round_time),
		CASE(each_frequency_has_its_own_window),
		CASE(a_frequency_waits_for_the_window_before),
		CASE(a_rejected_frequency_is_logged),
		CASE(a_lost_cpu_is_logged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
