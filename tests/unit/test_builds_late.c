/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds of a module whose debug file does not answer, in the search for it or while it is read:
 * the module has an index without it, and another one once it answers. This program is its own
 * child.
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
#include "base/io.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/elf/debug_names.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/builds_fixture.h"
#include "tests/unit/elf_writer.h"

enum { MAX_DONE = 8 };

static const uint8_t build_id[20] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
static bool late[MAX_DONE]; /* what `done` was told */

/* The debug file, as the helper finds it. */
static struct {
	int error; /* of opening it */
	int fd; /* -1 = there is none */
} debug_file;

static int helper_open(void *context, const struct foreign_path *path, int *ret_fd)
{
	(void)context;
	if (!strstr(path->path, ".build-id") || (!debug_file.error && debug_file.fd < 0))
		return -ENOENT;
	if (!debug_file.error)
		*ret_fd = fcntl(debug_file.fd, F_DUPFD_CLOEXEC, 0);
	return debug_file.error;
}

static int helper_stat(void *context, int fd, struct stat *ret_stat)
{
	(void)context;
	return fstat(fd, ret_stat) ? -errno : 0;
}

static int helper_send(void *context, int socket_fd, const void *bytes, size_t size, const int *fds,
	size_t fd_count)
{
	(void)context;
	return foreign_send_now(socket_fd, bytes, size, fds, fd_count);
}

static const struct foreign helper = {
	.open = helper_open, .stat = helper_stat, .send = helper_send
};

/* Children wait for a file server: SIGKILL does nothing. */
static bool immortal;

int kill(pid_t pid, int number)
{
	return number == SIGKILL && immortal ? 0 : (int)syscall(SYS_kill, pid, number);
}

/* ---- the child's side --------------------------------------------------------------------- */

static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	struct index_writer *w = index_writer_create();
	struct writer_segment segment = { .address = FUNCTION, .size = 4096, .file_off = FUNCTION };
	struct debug_names *names = calloc(1, sizeof(*names));
	bool has_debug = files->debug_files.count > 0;
	char what = 0;
	int err;

	(void)ret_result;
	if (!w || !names)
		return -ENOMEM;
	/* A pipe: waits as for a file that does not answer. */
	if (has_debug && read(files->debug_files.items[0].fd, &what, 1) < 0)
		return -EIO;
	if (!debug_names_read(files->elf_fd, names))
		writer_build_id(w, &names->build_id);
	free(names);
	writer_source(w, has_debug ? INDEX_SOURCE_DWARF : INDEX_SOURCE_SYMTAB);
	err = writer_segment(w, &segment);
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
	late[f->done_count] = builds_debug_is_late(f->builds);
	f->done[f->done_count++] = (struct done_call){ .tag = tag, .index = index };
}

static int setup(void **state)
{
	struct fixture *f = fixture_create();
	struct builds_options options;

	debug_file.error = 0;
	debug_file.fd = -1;
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
	if (debug_file.fd >= 0)
		close(debug_file.fd);
	return fixture_destroy(*state);
}

static int module_file(void)
{
	int fd = memfd_create("module", MFD_CLOEXEC);
	struct elf_writer w;

	elf_writer_init(&w);
	elf_writer_code(&w, ".text", FUNCTION, 0x200);
	elf_writer_build_id(&w, 0, build_id, sizeof(build_id));
	elf_writer_finish(&w);
	assert_int_equal(io_write_all(fd, w.file.bytes, w.file.size), 0);
	elf_writer_deinit(&w);
	return fd;
}

static void request(struct fixture *f)
{
	const struct debug_search search = {
		.root_fd = -1, .path = "/program", .directories = "/debug"
	};
	struct module_id id = make_id(1);

	assert_int_equal(builds_request_debug(f->builds, &id, module_file(), 1, &search), 0);
}

static void answer_now(const char *content)
{
	if (debug_file.fd >= 0)
		close(debug_file.fd);
	debug_file.error = 0;
	debug_file.fd = memfd_create("debug", MFD_CLOEXEC);
	assert_int_equal(io_write_all(debug_file.fd, content, strlen(content)), 0);
}

static void wait_for_done(struct fixture *f, size_t count)
{
	while (f->done_count < count)
		run_loop_once(f);
}

static bool has_lines(const struct fixture *f, size_t i)
{
	assert_non_null(f->done[i].index);
	return index_sources(f->done[i].index) & INDEX_SOURCE_DWARF;
}

static void test_a_search_without_an_answer_is_repeated(void **state)
{
	struct fixture *f = *state;

	debug_file.error = -EAGAIN;
	request(f);
	wait_for_done(f, 1);
	assert_false(has_lines(f, 0));
	assert_true(late[0]);
	request(f); /* the index is cached now */
	assert_int_equal(f->done_count, 2);
	assert_false(has_lines(f, 1));
	assert_true(late[1]);
	answer_now("lines");
	request(f);
	wait_for_done(f, 3);
	assert_true(has_lines(f, 2));
	assert_false(late[2]);
}

static void test_a_file_that_is_not_there_is_not_late(void **state)
{
	struct fixture *f = *state;

	request(f);
	wait_for_done(f, 1);
	assert_false(has_lines(f, 0));
	assert_false(late[0]);
}

/* Looks once a second, so to speak. */
static void look(struct fixture *f, uint64_t *now_ns)
{
	usleep(20000);
	*now_ns += UINT64_C(1000000000);
	builds_expire(f->builds, *now_ns);
	for (nfds_t i = 0; i < f->watched_count; i++) {
		if (poll(&f->watched[i], 1, 0) > 0)
			builds_ready(f->builds, f->watched[i].fd);
	}
}

/* It costs one child that waits for it, and the program its lines, but not its other names. */
static void test_a_module_is_built_without_what_hangs(void **state)
{
	struct fixture *f = *state;
	uint64_t now_ns = clock_monotonic_ns();
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	debug_file.fd = ends[0];
	immortal = true;
	request(f);
	while (!f->done_count)
		look(f, &now_ns);
	assert_false(has_lines(f, 0));
	assert_true(late[0]);
	assert_int_equal(builds_setbacks(f->builds).hanging, 1);
	/* As long as its child hangs, no other one reads the debug file. */
	request(f);
	while (f->done_count < 2)
		look(f, &now_ns);
	assert_false(has_lines(f, 1));
	assert_true(late[1]);
	assert_int_equal(builds_setbacks(f->builds).hanging, 1);
	immortal = false;
	close(ends[1]);
	while (waitid(P_ALL, 0, &(siginfo_t){ 0 }, WEXITED | WNOWAIT))
		;
	look(f, &now_ns);
	answer_now("lines");
	request(f);
	while (f->done_count < 3)
		look(f, &now_ns);
	assert_true(has_lines(f, 2));
	assert_false(late[2]);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_search_without_an_answer_is_repeated, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_file_that_is_not_there_is_not_late, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_module_is_built_without_what_hangs, setup, teardown),
	};

	if (argc > 1 && !strcmp(argv[1], "index-module"))
		return sandboxed_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
