/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds without lines that get a debug file from servers. This program is its own child: as the
 * downloader it does what the letter in the "server's" name says; as the sandbox it makes an index
 * without lines from an ELF file alone, and with a debug file does what the first letter of that
 * says.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "symbolizer/debuginfod/debuginfod.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/elf/debug_names.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/sandbox/sandbox_wire.h"
#include "symbolizer/sandboxed/close_in.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/builds_fixture.h"
#include "tests/unit/elf_writer.h"

enum { MAX_DONE = 64 };

static const uint64_t SECOND_NS = UINT64_C(1000000000);

/* ---- the children's side ------------------------------------------------------------------ */

static int write_index(const struct sandbox_files *files, const char *function, uint32_t sources)
{
	struct index_writer *w = index_writer_create();
	struct writer_segment segment = { .address = FUNCTION, .size = 4096, .file_off = FUNCTION };
	struct debug_names *names = calloc(1, sizeof(*names));
	uint32_t name = 0;
	int err;

	if (!w || !names)
		return -ENOMEM;
	if (!debug_names_read(files->elf_fd, names))
		writer_build_id(w, &names->build_id);
	free(names);
	writer_source(w, sources);
	err = writer_segment(w, &segment);
	if (!err)
		err = writer_string(w, function, strlen(function), &name);
	if (!err)
		err = writer_symbol(w, FUNCTION, 16, FUNCTION + 4096, name, WRITER_SYMBOL_GLOBAL);
	if (!err)
		err = writer_finish(w, files->output_fd);
	index_writer_destroy(w);
	return err;
}

static bool has_shared_parts(const struct sandbox_files *files)
{
	char what = 0;

	return files->debug_files.count == 2 &&
	       files->debug_files.items[1].role == DEBUG_FILE_SUPPLEMENTARY &&
	       pread(files->debug_files.items[1].fd, &what, 1, 0) == 1 && what == 'p';
}

static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	char what = 0;

	(void)ret_result;
	if (!files->debug_files.count)
		return write_index(files, "bare", INDEX_SOURCE_SYMTAB);
	if (files->debug_files.items[0].role != DEBUG_FILE_SEPARATE ||
		pread(files->debug_files.items[0].fd, &what, 1, 0) != 1)
		return -EIO;
	switch (what) {
	case 'r':
		return write_index(files, "lines", INDEX_SOURCE_DWARF);
	case 'o': /* of another build: ignored */
		return write_index(files, "bare", INDEX_SOURCE_DEBUG_FILES);
	case '\x7f': /* an ELF file that shares parts with another */
		return write_index(files,
			has_shared_parts(files) ? "lines and shared parts" : "lines",
			INDEX_SOURCE_DWARF);
	case 'd':
		return -ENOSPC;
	case 'm': /* the machine has none left */
		return -ENOMEM;
	default:
		__builtin_trap();
	}
}

/* A debug file that shares parts with others: it names them by the build ID 1122. */
static int write_sharing_file(void)
{
	static const char alternate[] = "/alt.debug\0\x11\x22";
	struct elf_writer w;
	int err;

	elf_writer_init(&w);
	elf_writer_code(&w, ".text", FUNCTION, 0x200);
	elf_writer_section(&w, &(struct elf_section_spec){ ".gnu_debugaltlink", .bytes = alternate,
				       .size = sizeof(alternate) - 1 });
	elf_writer_finish(&w);
	err = io_write_all(SANDBOX_OUTPUT_FD, w.file.bytes, w.file.size);
	elf_writer_deinit(&w);
	return err;
}

static int ask(const char *build_id)
{
	bool for_shared = !strcmp(build_id, "1122");
	const char *urls = getenv("DEBUGINFOD_URLS");
	char what = urls ? urls[strlen("http://")] : 0;
	struct sandbox_result result = { .broken_units = 200 };

	switch (what) {
	case 'n':
		result = (struct sandbox_result){ .error = -ENOENT, .broken_units = 1 << 16 };
		break;
	case 'e':
		result.error = -ECONNREFUSED;
		break;
	case 'S': /* has a debug file, but not the file it shares */
		if (for_shared) {
			result = (struct sandbox_result){ .error = -ENOENT,
				.broken_units = 1 << 16 };
			break;
		}
		/* fall through */
	case 's':
		result.error =
			for_shared ? io_write_all(SANDBOX_OUTPUT_FD, "p", 1) : write_sharing_file();
		break;
	case 'h':
		for (;;)
			pause();
	default:
		result.error = write(SANDBOX_OUTPUT_FD, &what, 1) == 1 ? 0 : -EIO;
	}
	sandbox_report(&result);
}

/* ---- the owner's side --------------------------------------------------------------------- */

static int module_file(uint8_t number);

/* Requests module 99 while no descriptors are left. */
static void request_without_descriptors(struct fixture *f)
{
	const struct debug_search search = { .directories = "", .root_fd = -1, .path = "/x" };
	const struct module_id id = make_id(99);
	int fd = module_file(99);
	struct rlimit whole, none;

	f->ask_again = 0;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
	none = whole;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(builds_request_debug(f->builds, &id, fd, 99, &search), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
}

static void on_done(void *context, uint64_t tag, struct index *index)
{
	struct fixture *f = context;

	assert_true(f->done_count < MAX_DONE);
	f->done[f->done_count++] = (struct done_call){ .tag = tag, .index = index };
	if (tag == f->ask_again)
		request_without_descriptors(f);
}

/* Waits until FD, which must be watched, is readable. */
static void builds_ready_at(struct fixture *f, int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&ready, 1, 10000), 1);
	builds_ready(f->builds, fd);
}

static size_t number_of(const struct fixture *f, uint64_t tag, const char *function)
{
	struct index_frame frame;
	size_t count = 0;

	for (size_t i = 0; i < f->done_count; i++)
		count += f->done[i].tag == tag && f->done[i].index &&
			 index_lookup(f->done[i].index, FUNCTION, &frame, 1) == 1 &&
			 !strcmp(frame.name, function);
	return count;
}

static int setup(void **state)
{
	struct fixture *f = fixture_create();

	if (!f)
		return -1;
	*state = f;
	return 0;
}

/* Builds that ask the server whose name begins with WHAT; 0 = none. */
static void start(struct fixture *f, char what)
{
	char url[] = "http://?.test";
	struct builds_options options = fixture_options(f, on_done);

	builds_destroy(f->builds);
	debuginfod_destroy(take(f->debuginfod));
	url[strlen("http://")] = what;
	assert_int_equal(!what ? 0
			       : debuginfod_create(
					 &(struct debuginfod_options){
						 .urls = url,
						 .cache = f->cache,
						 .metrics = &f->metrics,
					 },
					 &f->debuginfod),
		0);
	options.max_waiting = 64;
	options.debuginfod = f->debuginfod;
	assert_int_equal(builds_create(&options, &f->builds), 0);
}

static size_t files_in(const char *path, const char *part)
{
	autoclosedir DIR *d = opendir(path);
	const struct dirent *entry;
	size_t count = 0;

	while ((entry = readdir(d)))
		count += strstr(entry->d_name, part) != NULL;
	return count;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	bool clean;

	builds_destroy(take(f->builds));
	clean = files_in(f->directory, ".tmp") == 0;
	return fixture_destroy(f) || !clean ? -1 : 0;
}

static int module_file(uint8_t number)
{
	struct module_id id = make_id(number);
	struct elf_writer w;
	int fd;

	elf_writer_init(&w);
	elf_writer_code(&w, ".text", FUNCTION, 0x200);
	elf_writer_build_id(&w, 0x400, id.build_id.bytes, 20);
	fd = elf_writer_file(&w);
	elf_writer_deinit(&w);
	return fd;
}

static void request_path(struct fixture *f, uint8_t number, uint64_t tag, const char *path)
{
	const struct debug_search search = { .directories = "", .root_fd = -1, .path = path };
	struct module_id id = make_id(number);

	assert_int_equal(
		builds_request_debug(f->builds, &id, module_file(number), tag, &search), 0);
}

static void request(struct fixture *f, uint8_t number, uint64_t tag)
{
	request_path(f, number, tag, "/nowhere/program");
}

/* Runs until no build, question or answer is pending. */
static void run(struct fixture *f)
{
	builds_expire(f->builds, clock_monotonic_ns());
	while (f->watched_count) {
		run_loop_once(f);
		builds_expire(f->builds, clock_monotonic_ns());
	}
	assert_int_equal(builds_pending(f->builds), 0);
	assert_int_equal(builds_improving(f->builds).modules, 0);
}

static void assert_done(const struct fixture *f, size_t number, uint64_t tag, const char *function)
{
	struct index_frame frame;

	assert_true(number < f->done_count);
	assert_int_equal(f->done[number].tag, tag);
	assert_non_null(f->done[number].index);
	assert_int_equal(index_lookup(f->done[number].index, FUNCTION, &frame, 1), 1);
	assert_string_equal(frame.name, function);
}

/* ---- the cases ------------------------------------------------------------------------------ */

static void test_an_index_at_once_and_a_better_one_later(void **state)
{
	struct fixture *f = *state;

	start(f, 'r');
	request(f, 1, 11);
	assert_int_equal(builds_pending(f->builds), 1);
	while (!f->done_count)
		run_loop_once(f);
	assert_done(f, 0, 11, "bare");
	assert_int_equal(builds_pending(f->builds), 0);
	assert_int_equal(builds_improving(f->builds).modules, 1);
	run(f);
	assert_int_equal(f->done_count, 2);
	assert_done(f, 1, 11, "lines");
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_FOUND), 1);
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_BYTES), 1);
	assert_int_equal(files_in(f->directory, ""), 2 + 1); /* . and .. and the index */
	/* The cache has that index now. */
	request(f, 1, 12);
	run(f);
	assert_int_equal(f->done_count, 3);
	assert_done(f, 2, 12, "lines");
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_FOUND), 1);
}

static void test_an_index_of_the_cache_becomes_better(void **state)
{
	struct fixture *f = *state;

	start(f, 0);
	request(f, 1, 11);
	run(f);
	assert_int_equal(f->done_count, 1);
	start(f, 'r');
	request(f, 1, 12);
	assert_done(f, 1, 12, "bare");
	run(f);
	assert_int_equal(f->done_count, 3);
	assert_done(f, 2, 12, "lines");
}

static void test_a_request_in_between_gets_both(void **state)
{
	struct fixture *f = *state;

	start(f, 'r');
	request(f, 1, 11);
	while (!f->done_count)
		run_loop_once(f);
	request(f, 1, 12);
	request(f, 1, 12);
	assert_int_equal(f->done_count, 3);
	assert_done(f, 1, 12, "bare");
	run(f);
	assert_int_equal(f->done_count, 5);
	assert_done(f, 3, 11, "lines");
	assert_done(f, 4, 12, "lines");
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_FOUND), 1);
}

static void test_without_a_file_no_server_is_asked(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(3);

	start(f, 'r');
	request_path(f, 1, 11, "");
	request_path(f, 2, 12, "[vdso]");
	assert_int_equal(builds_request(f->builds, &id, module_file(3), 13), 0);
	run(f);
	assert_int_equal(f->done_count, 3);
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_FOUND), 0);
}

static void expect_no_better(struct fixture *f, enum metric id, uint64_t count)
{
	request(f, 1, 11);
	run(f);
	assert_int_equal(f->done_count, 1);
	assert_done(f, 0, 11, "bare");
	assert_int_equal(metric(f, id), count);
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_FOUND), 0);
	/* The cached index is unchanged. */
	request(f, 1, 12);
	run(f);
	assert_int_equal(f->done_count, 2);
	assert_done(f, 1, 12, "bare");
	assert_true(index_lacks_debug(f->done[1].index));
}

static void test_an_absent_file_is_asked_for_once(void **state)
{
	struct fixture *f = *state;

	start(f, 'n');
	expect_no_better(f, METRIC_DEBUGINFOD_ABSENT, 1);
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_ABSENT), 1);
}

static void test_the_file_of_another_build_is_asked_once(void **state)
{
	struct fixture *f = *state;

	start(f, 'o');
	expect_no_better(f, METRIC_DEBUGINFOD_WRONG, 1);
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_WRONG), 1);
}

static void test_a_file_that_kills_the_sandbox_is_asked_once(void **state)
{
	struct fixture *f = *state;
	struct module_id id = make_id(1);

	start(f, 'x');
	expect_no_better(f, METRIC_DEBUGINFOD_WRONG, 1);
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_WRONG), 1);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_CRASH), 1);
	/* Not the module's fault. */
	assert_false(cache_failed(f->cache, &id));
}

static void test_a_full_disk_is_not_the_files_fault(void **state)
{
	struct fixture *f = *state;

	start(f, 'd');
	expect_no_better(f, METRIC_DEBUGINFOD_WRONG, 0);
	start(f, 'r');
	request(f, 1, 13);
	run(f);
	assert_done(f, f->done_count - 1, 13, "lines");
}

static void test_a_file_that_interrupts_the_build_is_asked_for_later(void **state)
{
	struct fixture *f = *state;
	struct build_id debug_id = make_id(1).build_id;
	const struct module_id debug_file = { .build_id = debug_id };
	uint64_t now_ns;

	start(f, 'm');
	request(f, 1, 11);
	run(f);
	assert_done(f, 0, 11, "bare");
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_WRONG), 0);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_INTERRUPTED), 1);
	now_ns = clock_real_ns();
	assert_false(cache_absent(f->cache, &debug_id, "http://m.test", now_ns));
	/* The second pause is longer. */
	cache_add_interrupted(f->cache, &debug_file);
	now_ns = clock_real_ns();
	assert_true(cache_pause_ns(f->cache, &debug_file, now_ns) > SECOND_NS);
	assert_true(debuginfod_is_absent(f->debuginfod, &debug_id));
	assert_int_equal(cache_pause_ns(f->cache, &debug_file, now_ns + 5 * SECOND_NS), 0);
}

static void test_servers_that_fail_are_left_alone(void **state)
{
	struct fixture *f = *state;

	start(f, 'e');
	for (uint8_t i = 1; i <= 20; i++)
		request(f, i, i);
	run(f);
	assert_int_equal(f->done_count, 20);
	assert_true(metric(f, METRIC_DEBUGINFOD_FAILED) >= 1);
	assert_true(metric(f, METRIC_DEBUGINFOD_FAILED) <= BUILDS_OPEN_DEBUG);
	assert_int_equal(debuginfod_state(f->debuginfod).failures, 1);
	/* The failed servers' files were not recorded as absent. */
	start(f, 'r');
	request(f, 1, 21);
	run(f);
	assert_done(f, f->done_count - 1, 21, "lines");
}

static void test_several_questions_at_once(void **state)
{
	struct fixture *f = *state;
	uint64_t now_ns = clock_monotonic_ns();

	start(f, 'h');
	for (uint8_t i = 1; i <= 20; i++)
		request(f, i, i);
	while (f->done_count < 20)
		run_loop_once(f);
	builds_expire(f->builds, now_ns);
	assert_int_equal(f->watched_count, BUILDS_OPEN_DEBUG);
	assert_int_equal(builds_improving(f->builds).modules, 20);
	assert_int_equal(builds_pending(f->builds), 0);
	/* A server that does not answer times out, and its modules stop waiting. */
	builds_expire(f->builds, now_ns + 3600 * SECOND_NS);
	assert_int_equal(f->watched_count, 0);
	assert_int_equal(builds_improving(f->builds).modules, 0);
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_FAILED), BUILDS_OPEN_DEBUG);
}

static void test_many_questions_in_sequence(void **state)
{
	struct fixture *f = *state;

	start(f, 'r');
	for (uint8_t i = 1; i <= 20; i++)
		request(f, i, i);
	run(f);
	assert_int_equal(f->done_count, 40);
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_FOUND), 20);
}

/* The waiting sandbox ends, and a new one gets both files. */
static void test_what_a_debug_file_shares_is_asked_for_too(void **state)
{
	struct fixture *f = *state;

	start(f, 's');
	request(f, 1, 11);
	run(f);
	assert_int_equal(f->done_count, 2);
	assert_done(f, 0, 11, "bare");
	assert_done(f, 1, 11, "lines and shared parts");
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_FOUND), 2);
	assert_int_equal(metric(f, METRIC_INDEX_BUILDS_OK), 2);
}

static void test_shared_parts_that_are_not_there_are_asked_for_once(void **state)
{
	struct fixture *f = *state;

	start(f, 'S');
	request(f, 1, 11);
	run(f);
	assert_int_equal(f->done_count, 2);
	assert_done(f, 1, 11, "lines");
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_FOUND), 1);
	assert_int_equal(metric(f, METRIC_DEBUGINFOD_ABSENT), 1);
}

/* `done` may request a module. If nothing can be started then, what is being delivered stays. */
static void test_a_request_from_done_does_not_drop_a_delivery(void **state)
{
	struct fixture *f = *state;
	int question, third;

	start(f, 'r');
	request(f, 1, 11);
	while (!f->done_count)
		run_loop_once(f);
	builds_expire(f->builds, clock_monotonic_ns());
	assert_int_equal(f->watched_count, 1);
	question = f->watched[0].fd;
	request(f, 2, 12);
	request(f, 3, 13);
	third = f->watched[2].fd;
	/* The first has its debug file, but there is no free sandbox. */
	while (f->watched_count == 3)
		builds_ready_at(f, question);
	f->ask_again = 12;
	while (f->done_count < 2)
		builds_ready_at(f, f->watched[f->watched[0].fd == third].fd);
	assert_done(f, 1, 12, "bare");
	builds_expire(f->builds, clock_monotonic_ns() + 2 * SECOND_NS);
	run(f);
	assert_int_equal(number_of(f, 12, "lines"), 1);
}

static void test_destroy_ends_questions(void **state)
{
	struct fixture *f = *state;

	start(f, 'h');
	for (uint8_t i = 1; i <= 6; i++)
		request(f, i, i);
	while (f->done_count < 6)
		run_loop_once(f);
	builds_expire(f->builds, clock_monotonic_ns());
	assert_int_equal(f->watched_count, BUILDS_OPEN_DEBUG);
	builds_destroy(take(f->builds));
	assert_int_equal(f->watched_count, 0);
	assert_int_equal(f->done_count, 6);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		TEST(test_an_index_at_once_and_a_better_one_later),
		TEST(test_an_index_of_the_cache_becomes_better),
		TEST(test_a_request_in_between_gets_both),
		TEST(test_without_a_file_no_server_is_asked),
		TEST(test_an_absent_file_is_asked_for_once),
		TEST(test_the_file_of_another_build_is_asked_once),
		TEST(test_a_file_that_kills_the_sandbox_is_asked_once),
		TEST(test_a_full_disk_is_not_the_files_fault),
		TEST(test_a_file_that_interrupts_the_build_is_asked_for_later),
		TEST(test_servers_that_fail_are_left_alone),
		TEST(test_several_questions_at_once),
		TEST(test_many_questions_in_sequence),
		TEST(test_what_a_debug_file_shares_is_asked_for_too),
		TEST(test_shared_parts_that_are_not_there_are_asked_for_once),
		TEST(test_a_request_from_done_does_not_drop_a_delivery),
		TEST(test_destroy_ends_questions),
	};

	if (argc > 1 && !strcmp(argv[1], "index-module"))
		return sandboxed_run(argc, argv, act);
	if (argc > 1 && sandboxed_is_command(argv[1]))
		return ask(argv[4]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
