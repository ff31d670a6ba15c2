/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The build queue with real sandboxes: this program is its own child. The "ELF file" of a build is
 * a pipe from which the child reads one letter that tells it what to do, so a build runs until the
 * test lets it continue.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/builds_fixture.h"

enum { MAX_DONE = 32 };

/* ---- the child's side --------------------------------------------------------------------- */

/* WANTED: a file that the index lacks, NULL = none. */
static int write_index_of(int fd, const char *function, const char *wanted)
{
	struct index_writer *w = index_writer_create();
	struct writer_segment segment = { .address = FUNCTION, .size = 4096, .file_off = FUNCTION };
	uint32_t name = 0, path = 0;
	int err;

	if (!w)
		return -ENOMEM;
	err = writer_segment(w, &segment);
	if (!err && wanted)
		err = writer_string(w, wanted, strlen(wanted), &path);
	if (!err && wanted)
		err = writer_wanted(w, path);
	if (!err)
		err = writer_string(w, function, strlen(function), &name);
	if (!err)
		err = writer_symbol(w, FUNCTION, 16, FUNCTION + 4096, name, WRITER_SYMBOL_GLOBAL);
	if (!err)
		err = writer_finish(w, fd);
	index_writer_destroy(w);
	return err;
}

static int write_index(int fd)
{
	return write_index_of(fd, "function", NULL);
}

static int eat_memory(void)
{
	for (;;) {
		char *block = malloc(1 << 20);

		if (!block)
			return -ENOMEM;
		memset(block, 1, 1 << 20);
	}
}

static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	int elf_fd = files->elf_fd, output_fd = files->output_fd;
	char what = 0;

	(void)ret_result;
	if (read(elf_fd, &what, 1) != 1)
		return -EIO;
	switch (what) {
	case 'i':
		return write_index(output_fd);
	case 'w': /* asks for a file that exists, and gets it */
	case 'W': /* likewise, and crashes on it */
		if (!files->debug_files.count)
			return write_index_of(output_fd, "without", "/etc/passwd");
		if (what == 'W')
			__builtin_trap();
		return write_index_of(output_fd, "with", NULL);
	case 'n':
		return write_index_of(output_fd, "without", "/nonexistent/a.dwo");
	case 'f':
		for (;;) /* until it is killed */
			;
	case 'b':
		return -EBADMSG;
	case 'd':
		return -ENOSPC;
	case 'm':
		return eat_memory();
	case 'l': /* claims to have written an index */
		return write(output_fd, "not an index", 12) == 12 ? 0 : -EIO;
	default:
		__builtin_trap();
	}
}

/* ---- the owner's side --------------------------------------------------------------------- */

/* A request whose child may do WHAT at once; 0 leaves it waiting at the gate. Returns the gate. */
static int request(struct fixture *f, uint8_t number, char what, uint64_t tag)
{
	struct module_id id = make_id(number);
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	if (what)
		assert_int_equal(write(ends[1], &what, 1), 1);
	assert_int_equal(builds_request(f->builds, &id, ends[0], tag), 0);
	return ends[1];
}

static void on_done(void *context, uint64_t tag, struct index *index)
{
	struct fixture *f = context;

	assert_true(f->done_count < MAX_DONE);
	f->done[f->done_count++] = (struct done_call){ .tag = tag, .index = index };
	if (f->ask_again == tag)
		close(request(f, 99, 'i', 999));
}

static int setup(void **state)
{
	struct fixture *f = fixture_create();
	struct builds_options options;

	if (!f)
		return -1;
	options = fixture_options(f, on_done);
	*state = f;
	return builds_create(&options, &f->builds);
}

static int teardown(void **state)
{
	return fixture_destroy(*state);
}

static void run_until_done(struct fixture *f, size_t count)
{
	while (f->done_count < count)
		run_loop_once(f);
}

static void open_gate(int gate, char what)
{
	assert_int_equal(write(gate, &what, 1), 1);
	close(gate);
}

static void test_builds_once_and_then_finds_it(void **state)
{
	struct fixture *f = *state;
	struct index_frame frame;

	close(request(f, 1, 'i', 11));
	assert_int_equal(builds_pending(f->builds), 1);
	run_until_done(f, 1);
	assert_int_equal(f->done[0].tag, 11);
	assert_non_null(f->done[0].index);
	assert_int_equal(index_lookup(f->done[0].index, FUNCTION, &frame, 1), 1);
	assert_string_equal(frame.name, "function");
	assert_int_equal(builds_pending(f->builds), 0);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_OK), 1);
	assert_int_equal(metric(f, METRIC_INDEX_CACHE_HITS), 0);
	assert_true(builds_cpu_ns(f->builds) > 0);
	assert_true(builds_peak_bytes(f->builds) > 0);

	close(request(f, 1, 'i', 12));
	assert_int_equal(f->done_count, 2);
	assert_int_equal(f->done[1].tag, 12);
	assert_non_null(f->done[1].index);
	assert_int_equal(metric(f, METRIC_INDEX_CACHE_HITS), 1);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_OK), 1);
}

static void test_requests_of_one_module_share_a_build(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	int gate = request(f, 1, 0, 11);

	close(request(f, 1, 'i', 12));
	assert_int_equal(builds_request(f->builds, &id, -1, 13), 0);
	assert_int_equal(builds_pending(f->builds), 1);
	open_gate(gate, 'i');
	run_until_done(f, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(f->done[i].tag, 11 + i);
		assert_non_null(f->done[i].index);
	}
	assert_ptr_not_equal(f->done[0].index, f->done[1].index);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_OK), 1);
}

static void test_no_more_children_than_allowed(void **state)
{
	struct fixture *f = *state;
	int one = request(f, 1, 0, 1), two = request(f, 2, 0, 2);

	close(request(f, 3, 'i', 3));
	close(request(f, 4, 'i', 4));
	assert_int_equal(f->watched_count, 2);
	assert_int_equal(builds_pending(f->builds), 4);
	open_gate(two, 'i');
	run_until_done(f, 1);
	assert_int_equal(f->watched_count, 2);
	run_until_done(f, 3); /* 3 and 4 run beside 1, one after the other */
	assert_int_equal(f->done[1].tag, 3);
	assert_int_equal(f->done[2].tag, 4);
	open_gate(one, 'i');
	run_until_done(f, 4);
	assert_int_equal(builds_pending(f->builds), 0);
}

/* A request for a file of BYTES whose child does WHAT. */
static void request_sized(struct fixture *f, uint8_t number, char what, off_t bytes)
{
	struct module_id id = make_id(number);
	int fd = memfd_create("module", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &what, 1, 0), 1);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(builds_request(f->builds, &id, fd, number), 0);
}

static void test_cheapest_build_is_first(void **state)
{
	struct fixture *f = *state;
	int one = request(f, 1, 0, 1), two = request(f, 2, 0, 2);

	request_sized(f, 3, 'i', 2 << 20);
	request_sized(f, 4, 'i', 1 << 20);
	open_gate(two, 'i');
	run_until_done(f, 3);
	assert_int_equal(f->done[1].tag, 4);
	assert_int_equal(f->done[2].tag, 3);
	open_gate(one, 'i');
	run_until_done(f, 4);
}

static void test_most_awaited_build_is_first(void **state)
{
	struct fixture *f = *state;
	int one = request(f, 1, 0, 1), two = request(f, 2, 0, 2);

	request_sized(f, 3, 'i', 2 << 20);
	request_sized(f, 4, 'i', 1 << 20);
	for (int i = 0; i < 5; i++)
		builds_want(f->builds, 3);
	builds_want(f->builds, 4);
	/* Two small builds already run, so both requests queue. */
	assert_int_equal(f->watched_count, 2);
	open_gate(two, 'i');
	run_until_done(f, 3);
	assert_int_equal(f->done[1].tag, 3);
	assert_int_equal(f->done[2].tag, 4);
	open_gate(one, 'i');
	run_until_done(f, 4);
}

static void test_awaited_builds_run_beside_big_ones(void **state)
{
	struct fixture *f = *state;

	request_sized(f, 1, 'f', 1 << 30);
	request_sized(f, 2, 'f', 1 << 30);
	request_sized(f, 3, 'i', 1 << 20);
	assert_int_equal(f->watched_count, 2);
	builds_want(f->builds, 3);
	/* With the timer that ends the third one's hurry. */
	assert_int_equal(f->watched_count, 4);
	request_sized(f, 4, 'i', 1 << 20);
	builds_want(f->builds, 4);
	assert_int_equal(f->watched_count, 4);
	run_until_done(f, 2);
	assert_int_equal(f->done[0].tag, 3);
	assert_int_equal(f->done[1].tag, 4);
	assert_int_equal(builds_pending(f->builds), 2);
}

/* The file changed after it was identified, so the index describes unknown content. */
static void test_an_index_of_another_content_is_not_delivered(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	int ends[2];

	id.content.bytes[0] = 1;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(builds_request(f->builds, &id, ends[0], 11), 0);
	open_gate(ends[1], 'i');
	run_until_done(f, 1);
	assert_null(f->done[0].index);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_OK), 0);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_BAD_INPUT), 1);
	assert_false(cache_failed(f->cache, &id));
}

static void test_full_queue_refuses(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(5);
	int gates[4], ends[2];
	char byte = 0;

	for (uint8_t i = 0; i < 4; i++)
		gates[i] = request(f, i, 0, i);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(builds_request(f->builds, &id, ends[0], 5), -EAGAIN);
	assert_int_equal(fcntl(ends[0], F_GETFD), -1); /* closed all the same */
	close(ends[1]);
	assert_int_equal(f->done_count, 0);
	for (uint8_t i = 0; i < 4; i++)
		open_gate(gates[i], byte);
	run_until_done(f, 4);
}

static void expect_failure(struct fixture *f, char what, enum metric id, bool remembered)
{
	struct module_id module = make_id((uint8_t)what);

	close(request(f, (uint8_t)what, what, 1));
	run_until_done(f, 1);
	assert_null(f->done[0].index);
	assert_int_equal(metric(f, id), 1);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_OK), 0);
	assert_int_equal(cache_failed(f->cache, &module), remembered);
	if (!remembered)
		return;
	close(request(f, (uint8_t)what, 'i', 2));
	assert_int_equal(f->done_count, 2);
	assert_null(f->done[1].index);
	assert_int_equal(metric(f, id), 1);
}

static void test_bad_input_is_remembered(void **state)
{
	expect_failure(*state, 'b', METRIC_INDEX_BUILDS_BAD_INPUT, true);
}

static void test_crash_is_remembered(void **state)
{
	expect_failure(*state, 'c', METRIC_INDEX_BUILDS_CRASH, true);
}

static void test_limit_is_remembered(void **state)
{
	if (!sandbox_is_closed())
		skip();
	expect_failure(*state, 'm', METRIC_INDEX_BUILDS_LIMIT, true);
}

static void test_false_claim_of_a_child_is_a_crash(void **state)
{
	expect_failure(*state, 'l', METRIC_INDEX_BUILDS_CRASH, true);
}

static void test_full_disk_is_not_the_modules_fault(void **state)
{
	struct fixture *f = *state;
	const struct builds_setbacks *none = &(struct builds_setbacks){ 0 };
	struct builds_setbacks setbacks = builds_setbacks(f->builds);

	assert_memory_equal(&setbacks, none, sizeof(setbacks));
	expect_failure(f, 'd', METRIC_INDEX_BUILDS_NO_SPACE, false);
	setbacks = builds_setbacks(f->builds);
	assert_true(setbacks.no_space > 0);
	assert_int_equal(setbacks.space_error, -ENOSPC);
}

static void test_crash_does_not_affect_other_modules(void **state)
{
	struct fixture *f = *state;
	int gate = request(f, 1, 0, 1);

	close(request(f, 2, 'c', 2));
	run_until_done(f, 1);
	assert_int_equal(f->done[0].tag, 2);
	open_gate(gate, 'i');
	run_until_done(f, 2);
	assert_non_null(f->done[1].index);
}

static void test_child_that_sleeps_expires(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	int gate = request(f, 1, 0, 1);

	builds_expire(f->builds, clock_monotonic_ns());
	assert_int_equal(f->done_count, 0);
	builds_expire(f->builds, clock_monotonic_ns() + UINT64_C(46000000000));
	assert_int_equal(f->done_count, 1);
	assert_null(f->done[0].index);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_LIMIT), 1);
	assert_false(cache_failed(f->cache, &id));
	assert_int_equal(builds_pending(f->builds), 0);
	close(gate);
}

/* This process's only child. */
static pid_t only_child(void)
{
	char path[64], text[32] = "";
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	return (pid_t)strtol(text, NULL, 10);
}

/* As the kernel does where memory is short. */
static void kill_builder(struct fixture *f)
{
	size_t done = f->done_count;
	nfds_t watched = f->watched_count;

	assert_int_equal(kill(only_child(), SIGKILL), 0);
	while (f->watched_count == watched && f->done_count == done)
		run_loop_once(f);
}

static void expire_after(struct fixture *f, uint64_t seconds)
{
	builds_expire(f->builds, clock_monotonic_ns() + seconds * UINT64_C(1000000000));
}

static void test_a_builder_that_was_killed_is_started_again(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	int gate = request(f, 1, 0, 11);

	kill_builder(f);
	assert_int_equal(f->done_count, 0);
	assert_int_equal(f->watched_count, 0);
	assert_int_equal(builds_pending(f->builds), 1);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_INTERRUPTED), 1);
	assert_int_equal(builds_setbacks(f->builds).interrupted, 1);
	assert_false(cache_failed(f->cache, &id));
	/* A request in the meantime joins the waiting build. */
	assert_int_equal(builds_request(f->builds, &id, -1, 12), 0);
	builds_expire(f->builds, clock_monotonic_ns());
	assert_int_equal(f->watched_count, 0);
	expire_after(f, 2);
	open_gate(gate, 'i');
	run_until_done(f, 2);
	assert_non_null(f->done[0].index);
	assert_non_null(f->done[1].index);
	assert_int_equal(builds_pending(f->builds), 0);
	assert_int_equal(cache_pause_ns(f->cache, &id, clock_real_ns()), 0);
}

/* Puts the last interruption of each file so many seconds back. */
static void let_time_pass(const struct fixture *f, int64_t seconds)
{
	autoclosedir DIR *d = opendir(f->directory);
	const struct dirent *entry;

	while ((entry = readdir(d))) {
		struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
		struct stat st;

		if (!strstr(entry->d_name, ".interrupted"))
			continue;
		assert_int_equal(fstatat(dirfd(d), entry->d_name, &st, 0), 0);
		times[1] = st.st_mtim;
		times[1].tv_sec -= seconds;
		assert_int_equal(utimensat(dirfd(d), entry->d_name, times, 0), 0);
	}
}

static void test_a_file_that_kills_each_builder_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);
	int gate = request(f, 1, 0, 11);

	for (uint64_t seconds = 2; seconds <= 32; seconds *= 4) {
		kill_builder(f);
		assert_int_equal(f->done_count, 0);
		expire_after(f, seconds);
	}
	kill_builder(f);
	assert_int_equal(f->done_count, 1);
	assert_null(f->done[0].index);
	assert_int_equal(builds_pending(f->builds), 0);
	close(gate);
	/* It is not being built now, and nothing waits for it. */
	close(request(f, 1, 'i', 12));
	assert_int_equal(f->done_count, 2);
	assert_null(f->done[1].index);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_INTERRUPTED), 4);
	assert_false(cache_failed(f->cache, &id));
	/* Each interruption lengthens the pause, up to a day. */
	for (int i = 0; i < 20; i++)
		cache_add_interrupted(f->cache, &id);
	assert_true(cache_pause_ns(f->cache, &id, clock_real_ns()) > UINT64_C(86000000000000));
	let_time_pass(f, 86401);
	close(request(f, 1, 'i', 13));
	run_until_done(f, 3);
	assert_non_null(f->done[2].index);
}

static void test_without_descriptors_a_build_waits_for_some(void **state)
{
	struct fixture *f = *state;
	struct rlimit whole, none;
	int ends[2];
	struct module_id id = make_id(1);

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
	none = whole;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(builds_request(f->builds, &id, ends[0], 11), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_NOT_STARTED), 1);
	assert_int_equal(builds_setbacks(f->builds).start_error, -EMFILE);
	assert_int_equal(f->done_count, 0);
	expire_after(f, 2);
	open_gate(ends[1], 'i');
	run_until_done(f, 1);
	assert_non_null(f->done[0].index);
}

static void test_urgent_builds_have_our_priority(void **state)
{
	struct fixture *f = *state;
	int gate = request(f, 1, 0, 1), ours = getpriority(PRIO_PROCESS, 0);
	id_t child = (id_t)only_child();
	int lower;

	for (int i = 0; i < PATIENCE_MS && getpriority(PRIO_PROCESS, child) == ours; i++)
		poll(NULL, 0, 1);
	lower = getpriority(PRIO_PROCESS, child);
	/* As in a container without CAP_SYS_NICE, or if the priority is the lowest already. */
	if (lower == ours || setpriority(PRIO_PROCESS, child, ours)) {
		close(gate);
		skip();
	}
	assert_int_equal(setpriority(PRIO_PROCESS, child, lower), 0);
	builds_hurry(f->builds);
	assert_int_equal(getpriority(PRIO_PROCESS, child), ours);
	/* Once, and not for long. */
	while (getpriority(PRIO_PROCESS, child) == ours)
		run_loop_once(f);
	builds_hurry(f->builds);
	assert_int_equal(getpriority(PRIO_PROCESS, child), MIN(ours + SANDBOX_NICE, 19));
	open_gate(gate, 'i');
	run_until_done(f, 1);
	assert_non_null(f->done[0].index);
}

static void test_without_a_file_only_the_cache_is_asked(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);

	assert_int_equal(builds_request(f->builds, &id, -1, 1), 0);
	assert_int_equal(f->done_count, 1);
	assert_null(f->done[0].index);
	assert_false(cache_failed(f->cache, &id));
}

static void test_done_may_request_more(void **state)
{
	struct fixture *f = *state;

	f->ask_again = 1;
	close(request(f, 1, 'i', 1));
	run_until_done(f, 2);
	assert_int_equal(f->done[1].tag, 999);
	assert_non_null(f->done[1].index);
}

static void test_destroy_ends_running_and_waiting_builds(void **state)
{
	struct fixture *f = *state;
	struct pollfd gates[3];

	for (uint8_t i = 0; i < 3; i++)
		gates[i] = (struct pollfd){ .fd = request(f, i, 0, i) };
	builds_destroy(take(f->builds));
	assert_int_equal(f->watched_count, 0);
	assert_int_equal(f->done_count, 0);
	wait_for_children();
	/* No pipe has a reader any more. */
	assert_int_equal(poll(gates, 3, 0), 3);
	for (int i = 0; i < 3; i++) {
		assert_true(gates[i].revents & POLLERR);
		close(gates[i].fd);
	}
}

static void test_unwritable_cache_starts_nothing(void **state)
{
	struct fixture *f = *state;

	/* Nobody, not even root, can create a file in a removed directory. */
	assert_int_equal(rmdir(f->directory), 0);
	close(request(f, 1, 'i', 1));
	assert_int_equal(f->done_count, 1);
	assert_null(f->done[0].index);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_NOT_STARTED), 1);
	assert_int_equal(mkdir(f->directory, 0700), 0);
}

/* ---- what a second pass gives --------------------------------------------------------------- */

/* The child reads one byte in each pass. */
static void request_twice(struct fixture *f, uint8_t number, char what)
{
	const struct debug_search search = {
		.directories = "/nonexistent", .root_fd = -1, .path = "/nonexistent/x"
	};
	const char bytes[2] = { what, what };
	struct module_id id = make_id(number);
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], bytes, 2), 2);
	assert_int_equal(builds_request_debug(f->builds, &id, ends[0], number, &search), 0);
	close(ends[1]);
}

static void assert_function(const struct index *index, const char *name)
{
	struct index_frame frame;

	assert_non_null(index);
	assert_int_equal(index_lookup(index, FUNCTION, &frame, 1), 1);
	assert_string_equal(frame.name, name);
}

static void test_missing_files_are_given_in_a_second_pass(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(50);
	struct index *cached;

	request_twice(f, 50, 'w');
	run_until_done(f, 1);
	assert_function(f->done[0].index, "with");
	assert_int_equal(builds_pending(f->builds), 0);
	assert_int_equal(cache_open(f->cache, &id, &cached), 0);
	assert_function(cached, "with");
	index_destroy(cached);
	assert_int_equal(metrics_get(&f->metrics, METRIC_INDEX_BUILDS_OK), 1);
}

static void test_a_second_pass_that_fails_leaves_the_first(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(51);

	request_twice(f, 51, 'W');
	run_until_done(f, 1);
	assert_function(f->done[0].index, "without");
	assert_int_equal(metrics_get(&f->metrics, METRIC_INDEX_BUILDS_CRASH), 1);
	assert_false(cache_failed(f->cache, &id));
}

static void test_absent_files_cause_no_second_pass(void **state)
{
	struct fixture *f = *state;

	request_twice(f, 52, 'n');
	run_until_done(f, 1);
	assert_function(f->done[0].index, "without");
	/* A request without a search path has no second pass either. */
	close(request(f, 53, 'w', 53));
	run_until_done(f, 2);
	assert_function(f->done[1].index, "without");
	assert_int_equal(metrics_get(&f->metrics, METRIC_INDEX_BUILDS_OK), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_missing_files_are_given_in_a_second_pass),
		TEST(test_a_second_pass_that_fails_leaves_the_first),
		TEST(test_absent_files_cause_no_second_pass),
		TEST(test_builds_once_and_then_finds_it),
		TEST(test_requests_of_one_module_share_a_build),
		TEST(test_no_more_children_than_allowed),
		TEST(test_cheapest_build_is_first),
		TEST(test_most_awaited_build_is_first),
		TEST(test_awaited_builds_run_beside_big_ones),
		TEST(test_an_index_of_another_content_is_not_delivered),
		TEST(test_full_queue_refuses),
		TEST(test_bad_input_is_remembered),
		TEST(test_crash_is_remembered),
		TEST(test_limit_is_remembered),
		TEST(test_false_claim_of_a_child_is_a_crash),
		TEST(test_full_disk_is_not_the_modules_fault),
		TEST(test_crash_does_not_affect_other_modules),
		TEST(test_child_that_sleeps_expires),
		TEST(test_a_builder_that_was_killed_is_started_again),
		TEST(test_a_file_that_kills_each_builder_is_left_alone),
		TEST(test_without_descriptors_a_build_waits_for_some),
		TEST(test_urgent_builds_have_our_priority),
		TEST(test_without_a_file_only_the_cache_is_asked),
		TEST(test_done_may_request_more),
		TEST(test_destroy_ends_running_and_waiting_builds),
		TEST(test_unwritable_cache_starts_nothing),
	};

	if (argc > 1 && !strcmp(argv[1], "index-module"))
		return sandboxed_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
