/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for indexes with functions. This program is its own child: as the sandbox it makes an
 * index that has functions if they were wanted, and as the letter in the module's pipe says; as the
 * downloader it sends one byte. A pipe has one letter for each build, so a build without one waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "symbolizer/debuginfod/debuginfod.h"
#include "symbolizer/index/functions.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/sandbox/sandbox_wire.h"
#include "symbolizer/sandboxed/close_in.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/builds_fixture.h"

/* ---- the children's side -------------------------------------------------------------------- */

static int write_index(const struct sandbox_files *files, uint32_t sources)
{
	struct index_writer *w = index_writer_create();
	const struct module_id id = make_id(1);
	int err;

	if (!w)
		return -ENOMEM;
	writer_build_id(w, &id.build_id);
	writer_source(w, sources | (files->wants_functions ? INDEX_SOURCE_FUNCTIONS : 0));
	err = writer_segment(w, &(struct writer_segment){ FUNCTION, 4096, FUNCTION });
	if (!err)
		err = writer_finish(w, files->output_fd);
	index_writer_destroy(w);
	return err;
}

static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	struct sandbox_files without = *files;
	char what = 0;

	(void)ret_result;
	if (read(files->elf_fd, &what, 1) != 1)
		return -EIO;
	without.wants_functions = false;
	switch (what) {
	case 'i':
		return write_index(
			files, files->debug_files.count ? INDEX_SOURCE_DWARF : INDEX_SOURCE_SYMTAB);
	case 'n': /* no library for functions */
		return write_index(&without, INDEX_SOURCE_SYMTAB);
	case 'c': /* too much for it */
		if (files->wants_functions)
			__builtin_trap();
		return write_index(&without, INDEX_SOURCE_SYMTAB);
	default:
		__builtin_trap();
	}
}

/* A server that has each debug file: one byte. */
static int send_file(void)
{
	struct sandbox_result result = { .error = io_write_all(SANDBOX_OUTPUT_FD, "d", 1),
		.broken_units = 200 };

	sandbox_report(&result);
}

/* ---- the owner's side ----------------------------------------------------------------------- */

/* Pipes of the module whose builds are tested. */
struct gate {
	int ends[2];
};

/* A module whose first builds do what the LETTERS say. */
static struct gate gate_open(const char *letters)
{
	struct gate gate;

	assert_int_equal(pipe2(gate.ends, O_CLOEXEC), 0);
	assert_int_equal(write(gate.ends[1], letters, strlen(letters)), strlen(letters));
	return gate;
}

static void gate_close(const struct gate *gate)
{
	close(gate->ends[0]);
	close(gate->ends[1]);
}

static int request_at(struct fixture *f, const struct gate *gate, uint64_t tag, bool functions)
{
	const struct debug_search search = { .directories = "", .root_fd = -1, .path = "/x" };
	int fd = gate ? fcntl(gate->ends[0], F_DUPFD_CLOEXEC, 0) : -1;
	struct module_id id = make_id(1);

	return functions ? builds_request_functions(f->builds, &id, fd, tag, &search)
			 : builds_request_debug(f->builds, &id, fd, tag, &search);
}

static void plain(struct fixture *f, const struct gate *gate, uint64_t tag)
{
	assert_int_equal(request_at(f, gate, tag, false), 0);
}

static void functions(struct fixture *f, const struct gate *gate, uint64_t tag)
{
	assert_int_equal(request_at(f, gate, tag, true), 0);
}

/* A gate that on_done() uses; asked once. */
static const struct gate *asked_from_done;

static void on_done(void *context, uint64_t tag, struct index *index)
{
	const struct gate *gate = take(asked_from_done);
	struct fixture *f = context;

	assert_true(f->done_count < DONE_ROOM);
	f->done[f->done_count++] = (struct done_call){ .tag = tag, .index = index };
	if (gate)
		functions(f, gate, tag);
}

static void start(struct fixture *f, bool with_server)
{
	const struct debuginfod_options server = {
		.urls = "http://d.test", .cache = f->cache, .metrics = &f->metrics
	};
	struct builds_options options = fixture_options(f, on_done);

	if (with_server)
		assert_int_equal(debuginfod_create(&server, &f->debuginfod), 0);
	options.max_waiting = 8;
	options.debuginfod = f->debuginfod;
	assert_int_equal(builds_create(&options, &f->builds), 0);
}

static int setup_with(void **state, bool with_server)
{
	struct fixture *f = fixture_create();

	if (!f)
		return -1;
	start(f, with_server);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, false);
}

static int setup_server(void **state)
{
	return setup_with(state, true);
}

static int teardown(void **state)
{
	return fixture_destroy(*state);
}

static void run_until_done(struct fixture *f, size_t count)
{
	while (f->done_count < count)
		run_loop_once(f);
	assert_int_equal(f->done_count, count);
}

/* Answer NUMBER is an index for TAG; whether it has functions, and lines. */
static void assert_done(
	const struct fixture *f, size_t number, uint64_t tag, bool has_functions, bool has_lines)
{
	const struct index *index = f->done[number].index;

	assert_true(number < f->done_count);
	assert_int_equal(f->done[number].tag, tag);
	assert_non_null(index);
	assert_int_equal(index_has_functions(index), has_functions);
	assert_int_equal((index_sources(index) & INDEX_SOURCE_DWARF) != 0, has_lines);
}

/* ---- the cases ------------------------------------------------------------------------------ */

static void test_functions_are_there_if_they_are_wanted(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("i");

	functions(f, &gate, 11);
	run_until_done(f, 1);
	assert_done(f, 0, 11, true, false);
	/* From the cache, for either kind of request. */
	functions(f, &gate, 12);
	plain(f, &gate, 13);
	assert_int_equal(f->done_count, 3);
	assert_done(f, 1, 12, true, false);
	assert_done(f, 2, 13, true, false);
	gate_close(&gate);
}

static void test_a_cached_index_without_functions_is_built_again(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("ii");

	plain(f, &gate, 11);
	run_until_done(f, 1);
	assert_done(f, 0, 11, false, false);
	functions(f, &gate, 11);
	assert_int_equal(f->done_count, 1);
	run_until_done(f, 2);
	assert_done(f, 1, 11, true, false);
	plain(f, &gate, 12);
	assert_done(f, 2, 12, true, false);
	gate_close(&gate);
}

static void test_without_a_file_what_is_cached_has_to_do(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("i");

	plain(f, &gate, 11);
	run_until_done(f, 1);
	functions(f, NULL, 12);
	assert_int_equal(f->done_count, 2);
	assert_done(f, 1, 12, false, false);
	gate_close(&gate);
}

/* The only answer for TAG has functions. */
static void assert_has_functions(const struct fixture *f, uint64_t tag)
{
	size_t answers = 0;

	for (size_t i = 0; i < f->done_count; i++) {
		answers += f->done[i].tag == tag;
		if (f->done[i].tag == tag)
			assert_done(f, i, tag, true, false);
	}
	assert_int_equal(answers, 1);
}

/* Two modules run; the third one's request changes while it waits. */
static void test_a_waiting_build_gets_functions(void **state)
{
	struct fixture *f = *state;
	struct gate others = gate_open(""), gate = gate_open("i");

	for (uint8_t i = 2; i <= 3; i++) {
		struct module_id id = make_id(i);

		assert_int_equal(builds_request(f->builds, &id,
					 fcntl(others.ends[0], F_DUPFD_CLOEXEC, 0), i),
			0);
	}
	plain(f, &gate, 11);
	functions(f, &gate, 11); /* the same requester: one answer */
	functions(f, &gate, 12);
	assert_int_equal(write(others.ends[1], "ii", 2), 2);
	run_until_done(f, 4);
	assert_has_functions(f, 11);
	assert_has_functions(f, 12);
	gate_close(&others);
	gate_close(&gate);
}

static void test_a_running_build_is_repeated_before_anybody_gets_it(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("");

	plain(f, &gate, 11);
	assert_int_equal(f->watched_count, 1);
	functions(f, &gate, 11);
	functions(f, &gate, 12);
	assert_int_equal(write(gate.ends[1], "ii", 2), 2);
	run_until_done(f, 2);
	assert_done(f, 0, 11, true, false);
	assert_done(f, 1, 12, true, false);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_OK), 2);
	gate_close(&gate);
}

static void test_without_the_library_there_is_an_end(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("n");

	functions(f, &gate, 11);
	run_until_done(f, 1);
	assert_done(f, 0, 11, false, false);
	assert_int_equal(builds_pending(f->builds), 0);
	gate_close(&gate);
}

/* Functions that are too much for the builder leave the index without. */
static void test_failed_functions_leave_the_plain_index(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("ccc");

	functions(f, &gate, 11);
	run_until_done(f, 1);
	assert_null(f->done[0].index);
	/* That was no failure of the file. */
	plain(f, &gate, 12);
	run_until_done(f, 2);
	assert_done(f, 1, 12, false, false);
	functions(f, &gate, 13);
	run_until_done(f, 3);
	assert_done(f, 2, 13, false, false);
	plain(f, &gate, 14);
	assert_done(f, 3, 14, false, false);
	gate_close(&gate);
}

static void test_a_better_index_keeps_functions(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("ii");

	functions(f, &gate, 11);
	run_until_done(f, 1);
	assert_done(f, 0, 11, true, false);
	builds_expire(f->builds, clock_monotonic_ns());
	run_until_done(f, 2);
	assert_done(f, 1, 11, true, true);
	gate_close(&gate);
}

static void test_what_improves_a_cached_index_keeps_functions(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("i");

	functions(f, &gate, 11);
	run_until_done(f, 1);
	builds_destroy(take(f->builds));
	start(f, true);
	plain(f, &gate, 12);
	assert_done(f, 1, 12, true, false);
	assert_int_equal(write(gate.ends[1], "i", 1), 1);
	builds_expire(f->builds, clock_monotonic_ns());
	run_until_done(f, 3);
	assert_done(f, 2, 12, true, true);
	gate_close(&gate);
}

/* Nobody waits for a server to get functions, and everybody gets the lines in the end. */
static void test_functions_come_before_lines(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("i");

	plain(f, &gate, 11);
	run_until_done(f, 1);
	assert_done(f, 0, 11, false, false);
	builds_expire(f->builds, clock_monotonic_ns());
	functions(f, &gate, 12); /* while the server is asked */
	assert_int_equal(f->done_count, 1);
	assert_int_equal(write(gate.ends[1], "ii", 2), 2);
	run_until_done(f, 3);
	assert_done(f, 1, 12, true, false);
	assert_done(f, 2, 11, true, false);
	builds_expire(f->builds, clock_monotonic_ns());
	run_until_done(f, 5);
	assert_done(f, 3, 12, true, true);
	assert_done(f, 4, 11, true, true);
	gate_close(&gate);
}

/* The index that is being delivered is the one to be improved. */
static void test_done_may_want_functions(void **state)
{
	struct fixture *f = *state;
	struct gate gate = gate_open("iii");

	asked_from_done = &gate;
	plain(f, &gate, 11);
	run_until_done(f, 2);
	assert_done(f, 0, 11, false, false);
	assert_done(f, 1, 11, true, false);
	builds_expire(f->builds, clock_monotonic_ns());
	run_until_done(f, 3);
	assert_done(f, 2, 11, true, true);
	gate_close(&gate);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_WITH_SERVER(name) cmocka_unit_test_setup_teardown(name, setup_server, teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_functions_are_there_if_they_are_wanted),
		TEST(test_a_cached_index_without_functions_is_built_again),
		TEST(test_without_a_file_what_is_cached_has_to_do),
		TEST(test_a_waiting_build_gets_functions),
		TEST(test_a_running_build_is_repeated_before_anybody_gets_it),
		TEST(test_without_the_library_there_is_an_end),
		TEST(test_failed_functions_leave_the_plain_index),
		TEST_WITH_SERVER(test_a_better_index_keeps_functions),
		TEST(test_what_improves_a_cached_index_keeps_functions),
		TEST_WITH_SERVER(test_functions_come_before_lines),
		TEST_WITH_SERVER(test_done_may_want_functions),
	};

	if (argc > 1 && !strcmp(argv[1], "index-module"))
		return sandboxed_run(argc, argv, act);
	if (argc > 1 && sandboxed_is_command(argv[1]))
		return send_file();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
