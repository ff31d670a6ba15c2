/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds of files that may not answer: the queue never asks such a file for anything except through
 * base/foreign.h, which has a deadline. This program is its own child, and its own fstat().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/foreign.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/builds_fixture.h"

enum { MAX_DONE = 8 };

/* The file whose server may not answer. */
static struct {
	ino_t inode;
	int error; /* what the helper says; 0 = the file answers */
	unsigned int asked, asked_directly;
} file;

static int ask_kernel(int fd, struct stat *ret_stat)
{
	return (int)syscall(SYS_newfstatat, fd, "", ret_stat, AT_EMPTY_PATH);
}

int fstat(int fd, struct stat *ret_stat)
{
	int result = ask_kernel(fd, ret_stat);

	file.asked_directly += !result && file.inode && ret_stat->st_ino == file.inode;
	return result;
}

static int helper_stat(void *context, int fd, struct stat *ret_stat)
{
	(void)context;
	file.asked++;
	return file.error ? file.error : ask_kernel(fd, ret_stat);
}

static const struct foreign helper = { .stat = helper_stat };

/* ---- the child's side --------------------------------------------------------------------- */

static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	struct index_writer *w = index_writer_create();
	struct writer_segment segment = { .address = FUNCTION, .size = 4096, .file_off = FUNCTION };
	int err = w ? writer_segment(w, &segment) : -ENOMEM;

	(void)ret_result;
	if (!err)
		err = writer_finish(w, files->output_fd);
	index_writer_destroy(w);
	return err;
}

/* ---- the owner's side --------------------------------------------------------------------- */

static void on_done(void *context, uint64_t tag, struct index *index)
{
	struct fixture *f = context;

	assert_true(f->done_count < MAX_DONE);
	f->done[f->done_count++] = (struct done_call){ .tag = tag, .index = index };
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct builds_options options = {
		.metrics = &f->metrics,
		.limits = { .memory_bytes = 256 << 20, .cpu_seconds = 10, .output_bytes = 1 << 20 },
		.max_children = 2,
		.max_waiting = 2,
		.watch = on_watch,
		.done = on_done,
		.context = f,
	};

	memset(&file, 0, sizeof(file));
	foreign_current = &helper;
	snprintf(f->directory, sizeof(f->directory), "/tmp/fathom-builds-XXXXXX");
	if (!mkdtemp(f->directory) || cache_create(f->directory, LIMIT, &f->cache))
		return -1;
	options.cache = f->cache;
	*state = f;
	return builds_create(&options, &f->builds);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	bool clean;

	foreign_current = NULL;
	builds_destroy(f->builds);
	clean = f->watched_count == 0;
	for (size_t i = 0; i < f->done_count; i++)
		index_destroy(f->done[i].index);
	cache_destroy(f->cache);
	empty_directory(f->directory);
	clean = rmdir(f->directory) == 0 && clean;
	free(f);
	return clean ? 0 : -1;
}

static int request(struct fixture *f, uint8_t number)
{
	const struct debug_search search = { .root_fd = -1, .path = "", .directories = "" };
	struct module_id id = make_id(number);
	int fd = memfd_create("module", MFD_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(ask_kernel(fd, &st), 0);
	file.inode = st.st_ino;
	return builds_request_debug(f->builds, &id, fd, number, &search);
}

static void test_only_the_helper_asks_the_file(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(request(f, 1), 0);
	while (!f->done_count)
		run_loop_once(f);
	assert_non_null(f->done[0].index);
	assert_true(file.asked > 0);
	assert_int_equal(file.asked_directly, 0);
}

static void test_a_file_that_does_not_answer_is_refused(void **state)
{
	struct fixture *f = *state;

	file.error = -EAGAIN;
	assert_int_equal(request(f, 1), -EAGAIN);
	assert_int_equal(f->watched_count, 0);
	/* That is nobody's fault: it may be requested again. */
	file.error = 0;
	assert_int_equal(request(f, 1), 0);
	while (!f->done_count)
		run_loop_once(f);
	assert_non_null(f->done[0].index);
	assert_int_equal(file.asked_directly, 0);
}

static void test_a_file_that_cannot_be_read_is_left_to_the_builder(void **state)
{
	struct fixture *f = *state;

	file.error = -EIO;
	assert_int_equal(request(f, 1), 0);
	while (!f->done_count)
		run_loop_once(f);
	assert_int_equal(file.asked_directly, 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_only_the_helper_asks_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_does_not_answer_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_cannot_be_read_is_left_to_the_builder, setup, teardown),
	};

	if (argc > 1 && !strcmp(argv[1], "index-module"))
		return sandboxed_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
