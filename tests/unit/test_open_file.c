/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/fake_proc.h"

enum { PID = 41, ITS_OWN_PID = 7, NOBODY = 65534 };

struct fixture {
	struct fake_proc proc;
	char root[128], outside[128]; /* the process's root directory, and one outside of it */
};

static const char *below(const char *directory, const char *name)
{
	static char paths[4][512];
	static unsigned int turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static void write_map(const char *directory, const char *text)
{
	int fd = open(below(directory, "perf-7.map"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int setup(void **state)
{
	static struct fixture f;

	fake_proc_init(&f.proc);
	fake_proc_process(&f.proc, PID, &(struct fake_process){ .comm = "jit" });
	snprintf(f.root, sizeof(f.root), "%s/its-root", f.proc.path);
	snprintf(f.outside, sizeof(f.outside), "%s/outside", f.proc.path);
	fake_proc_root(&f.proc, PID, f.root);
	*state = &f;
	return mkdir(f.root, 0700) || mkdir(f.outside, 0700);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fake_proc_deinit(&f->proc);
	return 0;
}

static void make_tmp(const struct fixture *f)
{
	assert_int_equal(mkdir(below(f->root, "tmp"), 0700), 0);
}

static int open_it(const struct fixture *f, int *ret_fd)
{
	return open_perf_map(f->proc.fd, PID, ITS_OWN_PID, ret_fd);
}

static void expect(const struct fixture *f, const char *text)
{
	char got[64] = "";
	int fd;

	assert_int_equal(open_it(f, &fd), 0);
	assert_int_equal(read(fd, got, sizeof(got) - 1), strlen(text));
	assert_string_equal(got, text);
	close(fd);
}

static void expect_error(const struct fixture *f, int error)
{
	int fd = -1;

	assert_int_equal(open_it(f, &fd), error);
	assert_int_equal(fd, -1);
}

static void perf_map_of_its_root_and_namespace(void **state)
{
	struct fixture *f = *state;

	expect_error(f, -ENOENT);
	make_tmp(f);
	write_map(below(f->root, "tmp"), "10 10 its");
	expect(f, "10 10 its");
}

/* A container's /tmp may be a link, which leads to a place in the container, not on the host. */
static void perf_map_through_a_linked_directory(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(symlink("../outside", below(f->root, "tmp")), 0);
	write_map(f->outside, "10 10 ours");
	expect_error(f, -ENOENT);
	assert_int_equal(unlink(below(f->root, "tmp")), 0);
	assert_int_equal(symlink("/elsewhere", below(f->root, "tmp")), 0);
	assert_int_equal(mkdir(below(f->root, "elsewhere"), 0700), 0);
	write_map(below(f->root, "elsewhere"), "10 10 its");
	expect(f, "10 10 its");
}

static void perf_map_that_is_a_link(void **state)
{
	struct fixture *f = *state;

	make_tmp(f);
	write_map(f->root, "10 10 another's");
	assert_int_equal(symlink("/perf-7.map", below(f->root, "tmp/perf-7.map")), 0);
	expect_error(f, -ESTALE);
}

/* Opening a FIFO would wait for a writer; opening a device may have side effects. */
static void perf_map_that_is_no_file(void **state)
{
	struct fixture *f = *state;

	make_tmp(f);
	assert_int_equal(mkfifo(below(f->root, "tmp/perf-7.map"), 0600), 0);
	expect_error(f, -ESTALE);
	assert_int_equal(unlink(below(f->root, "tmp/perf-7.map")), 0);
	assert_int_equal(mkdir(below(f->root, "tmp/perf-7.map"), 0700), 0);
	expect_error(f, -ESTALE);
}

static void perf_map_of_another_user(void **state)
{
	struct fixture *f = *state;

	if (geteuid())
		skip();
	make_tmp(f);
	write_map(below(f->root, "tmp"), "10 10 theirs");
	assert_int_equal(chown(below(f->root, "tmp/perf-7.map"), NOBODY, NOBODY), 0);
	expect_error(f, -EPERM);
}

static void perf_map_of_a_process_that_is_gone(void **state)
{
	struct fixture *f = *state;

	make_tmp(f);
	write_map(below(f->root, "tmp"), "10 10 its");
	fake_proc_remove(&f->proc, PID);
	expect_error(f, -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			perf_map_of_its_root_and_namespace, setup, teardown),
		cmocka_unit_test_setup_teardown(
			perf_map_through_a_linked_directory, setup, teardown),
		cmocka_unit_test_setup_teardown(perf_map_that_is_a_link, setup, teardown),
		cmocka_unit_test_setup_teardown(perf_map_that_is_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(perf_map_of_another_user, setup, teardown),
		cmocka_unit_test_setup_teardown(
			perf_map_of_a_process_that_is_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
