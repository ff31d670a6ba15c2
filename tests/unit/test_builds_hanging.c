/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds of files that may not answer: the queue never asks such a file for anything except through
 * base/foreign.h, which has a deadline. This program is its own child, and its own fstat().
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
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
	char what = 0;

	(void)ret_result;
	/* A pipe: waits as for a file that does not answer. */
	if (lseek(files->elf_fd, 0, SEEK_SET) < 0)
		(void)!read(files->elf_fd, &what, 1);
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
	struct fixture *f = fixture_create();
	struct builds_options options;

	memset(&file, 0, sizeof(file));
	foreign_current = &helper;
	if (!f)
		return -1;
	options = fixture_options(f, on_done);
	*state = f;
	return builds_create(&options, &f->builds);
}

static int teardown(void **state)
{
	foreign_current = NULL;
	return fixture_destroy(*state);
}

static int request_fd(struct fixture *f, uint8_t number, int fd)
{
	const struct debug_search search = { .root_fd = -1, .path = "", .directories = "" };
	struct module_id id = make_id(number);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(ask_kernel(fd, &st), 0);
	file.inode = st.st_ino;
	return builds_request_debug(f->builds, &id, fd, number, &search);
}

static int request(struct fixture *f, uint8_t number)
{
	return request_fd(f, number, memfd_create("module", MFD_CLOEXEC));
}

/* A file that does not answer until *RET_ANSWER is closed. */
static int request_hanging(struct fixture *f, uint8_t number, int *ret_answer)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	*ret_answer = ends[1];
	return request_fd(f, number, ends[0]);
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

/* A child whose end waits for a file server: SIGKILL does nothing. */
static bool immortal;

int kill(pid_t pid, int number)
{
	return number == SIGKILL && immortal ? 0 : (int)syscall(SYS_kill, pid, number);
}

static void look(struct fixture *f, int times, uint64_t *now_ns)
{
	for (int i = 0; i < times; i++) {
		usleep(20000);
		*now_ns += UINT64_C(1000000000);
		builds_expire(f->builds, *now_ns);
	}
}

/* Two files that do not answer take all places; the third is built beside them. */
static void test_others_are_built_beside_what_hangs(void **state)
{
	struct fixture *f = *state;
	uint64_t now_ns = clock_monotonic_ns();
	int answers[2];

	assert_int_equal(request_hanging(f, 1, &answers[0]), 0);
	assert_int_equal(request_hanging(f, 2, &answers[1]), 0);
	assert_int_equal(request(f, 3), 0);
	while (f->watched_count < 3)
		look(f, 1, &now_ns);
	while (!f->done_count)
		run_loop_once(f);
	assert_int_equal(f->done[0].tag, 3);
	assert_non_null(f->done[0].index);
	assert_int_equal(f->watched_count, 2);
	close(answers[0]);
	close(answers[1]);
}

/* It is ended, retried while it can be, and then refused; one child at most hangs for a file. */
static void test_what_hangs_is_ended(void **state)
{
	struct fixture *f = *state;
	uint64_t now_ns = clock_monotonic_ns();
	siginfo_t ended = { 0 };
	int answer;

	assert_int_equal(request_hanging(f, 1, &answer), 0);
	immortal = true;
	while (!builds_setbacks(f->builds).hanging)
		look(f, 1, &now_ns);
	assert_int_equal(f->watched_count, 0);
	assert_int_equal(f->done_count, 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_INDEX_BUILDS_INTERRUPTED), 1);
	while (!f->done_count) {
		look(f, 1, &now_ns);
		assert_int_equal(f->watched_count, 0);
	}
	immortal = false;
	assert_null(f->done[0].index);
	assert_int_equal(builds_setbacks(f->builds).hanging, 1);
	close(answer);
	while (!waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) && !ended.si_pid)
		;
	/* Then it may be built: its child is reaped. */
	look(f, 1, &now_ns);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(request(f, 1), 0);
	while (!f->watched_count)
		look(f, 1, &now_ns);
	while (f->done_count < 2)
		run_loop_once(f);
	assert_non_null(f->done[1].index);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_only_the_helper_asks_the_file, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_does_not_answer_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_others_are_built_beside_what_hangs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_hangs_is_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_cannot_be_read_is_left_to_the_builder, setup, teardown),
	};

	if (argc > 1 && !strcmp(argv[1], "index-module"))
		return sandboxed_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
