/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening files below a foreign root directory: the kernel's path resolution, and the walk that
 * replaces openat2() where it is missing.
 */
#include "base/open_regular.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/refused_call.h"

struct fixture {
	char directory[64]; /* holds `root`, and `secret` beside it */
	int top, root;
	int free_fd; /* lowest free descriptor, before and after the case */
};

static int lowest_free_fd(void)
{
	autoclose int fd = open("/", O_PATH | O_CLOEXEC);

	return fd;
}

static void write_file(int directory, const char *name, const char *text)
{
	autoclose int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const char *base = getenv("TMPDIR");

	snprintf(f->directory, sizeof(f->directory), "%s/open-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(f->directory));
	f->top = open(f->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(f->top, "root", 0700), 0);
	f->root = openat(f->top, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->root >= 0);
	write_file(f->top, "secret", "ours");
	write_file(f->root, "file", "theirs");
	assert_int_equal(mkdirat(f->root, "a", 0700), 0);
	assert_int_equal(mkdirat(f->root, "a/b", 0700), 0);
	write_file(f->root, "a/b/deep", "deep");
	f->free_fd = lowest_free_fd();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	assert_int_equal(lowest_free_fd(), f->free_fd);
	close(f->root);
	close(f->top);
	snprintf(command, sizeof(command), "rm -r %s", f->directory);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

/* How many calls of openat2() still fail with EAGAIN, as they do during foreign renames. */
static unsigned int races;

/* Replaces libc's syscall(). */
long syscall(long number, ...)
{
	long (*of_libc)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6];
	va_list arguments;

	if (number == SYS_openat2 && races) {
		races--;
		errno = EAGAIN;
		return -1;
	}
	va_start(arguments, number);
	for (size_t i = 0; i < sizeof(a) / sizeof(*a); i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	return of_libc(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

struct opening {
	int root;
	const char *path;
	bool itself;
	int fd;
};

static int open_it(void *context)
{
	struct opening *o = context;

	return o->itself ? open_regular_itself_below(o->root, o->path, &o->fd)
			 : open_regular_below(o->root, o->path, &o->fd);
}

/* Checks that the file that was opened is also found, as a mere path. */
static void check_found(const struct opening *o)
{
	struct stat opened, found;
	int fd = -1;

	assert_int_equal(o->itself ? open_regular_find_itself_below(o->root, o->path, &fd)
				   : open_regular_find_below(o->root, o->path, &fd),
		0);
	assert_true(open_regular_is_path(fd));
	assert_false(open_regular_is_path(o->fd));
	assert_int_equal(fstat(o->fd, &opened), 0);
	assert_int_equal(fstat(fd, &found), 0);
	assert_int_equal(found.st_ino, opened.st_ino);
	close(fd);
}

/* Checks that RESULT of O is `contents`, or that it failed with ERROR and gave nothing. */
static void check(struct opening *o, int result, int error, const char *contents)
{
	char text[16] = "";

	if (result != error)
		print_error("%s: %d instead of %d\n", o->path, result, error);
	assert_int_equal(result, error);
	if (error) {
		assert_int_equal(o->fd, -7);
		return;
	}
	assert_true(read(o->fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, contents);
	assert_int_equal(fcntl(o->fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(o->fd, F_GETFL) & O_PATH, 0);
	check_found(o);
	close(o->fd);
}

struct expected {
	const char *path;
	int error; /* by openat2() */
	int walk_error; /* by the walk without it */
	const char *contents;
};

static const struct refused_call no_openat2 = { .number = SYS_openat2, .error = ENOSYS };

static void check_all(int root, bool itself, const struct expected *expected, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct expected *e = &expected[i];
		struct opening o = { .root = root, .path = e->path, .itself = itself, .fd = -7 };

		check(&o, open_it(&o), e->error, e->contents);
		o.fd = -7;
		check(&o, with_refused_call(&no_openat2, open_it, &o), e->walk_error, e->contents);
	}
}

static void components_one_after_the_other(void **state)
{
	static const struct expected expected[] = {
		{ "file", 0, 0, "theirs" },
		{ "/file", 0, 0, "theirs" },
		{ "a/b/deep", 0, 0, "deep" },
		{ "/a/b/deep", 0, 0, "deep" },
		{ "///a//b/./deep", 0, 0, "deep" },
		{ "./file", 0, 0, "theirs" },
		{ "a/b/shallow", -ENOENT, -ENOENT },
		{ "a/c/deep", -ENOENT, -ENOENT },
		{ "file/deep", -ENOTDIR, -ENOTDIR },
		{ "file/", -ENOTDIR, -ENOTDIR },
		{ "a/b", -ESTALE, -ESTALE },
		{ "a/b/", -ESTALE, -ESTALE },
		{ "/", -ESTALE, -ESTALE },
	};
	const struct fixture *f = *state;

	check_all(f->root, false, expected, ARRAY_SIZE(expected));
	check_all(f->root, true, expected, ARRAY_SIZE(expected));
}

/* `..` stays below the root, or the path leads nowhere. */
static void dots_do_not_escape_the_root(void **state)
{
	static const struct expected expected[] = {
		{ "../secret", -ENOENT, -ENOENT },
		{ "/../secret", -ENOENT, -ENOENT },
		{ "a/../../secret", -ENOENT, -ENOENT },
		{ "a/b/../../../secret", -ENOENT, -ENOENT },
		{ "..", -ESTALE, -ENOENT },
		{ "../file", 0, -ENOENT, "theirs" },
		{ "a/../file", 0, -ENOENT, "theirs" },
		{ "a/b/..", -ESTALE, -ENOENT },
		{ "...", -ENOENT, -ENOENT },
	};
	const struct fixture *f = *state;

	check_all(f->root, false, expected, ARRAY_SIZE(expected));
	check_all(f->root, true, expected, ARRAY_SIZE(expected));
}

static void link_to(const struct fixture *f, const char *target, const char *name)
{
	assert_int_equal(symlinkat(target, f->root, name), 0);
}

static void links_do_not_escape_the_root(void **state)
{
	static const struct expected expected[] = {
		{ "inside", 0, -EOPNOTSUPP, "deep" },
		{ "absolute", 0, -EOPNOTSUPP, "deep" },
		{ "directory/deep", 0, -EOPNOTSUPP, "deep" },
		{ "directory//deep", 0, -EOPNOTSUPP, "deep" },
		{ "up", -ENOENT, -EOPNOTSUPP },
		{ "upwards/secret", -ENOENT, -EOPNOTSUPP },
		{ "outside", -ENOENT, -EOPNOTSUPP },
		{ "circle", -ELOOP, -EOPNOTSUPP },
		{ "dangling", -ENOENT, -EOPNOTSUPP },
	};
	const struct fixture *f = *state;
	char secret[128];

	snprintf(secret, sizeof(secret), "%s/secret", f->directory);
	link_to(f, "a/b/deep", "inside");
	link_to(f, "/a/b/deep", "absolute");
	link_to(f, "/a/b", "directory");
	link_to(f, "../secret", "up");
	link_to(f, "..", "upwards");
	link_to(f, secret, "outside");
	link_to(f, "circle", "circle");
	link_to(f, "nothing", "dangling");
	check_all(f->root, false, expected, ARRAY_SIZE(expected));
}

/* The last component must not be a link; the directories before it may be links. */
static void a_link_itself_is_refused(void **state)
{
	static const struct expected expected[] = {
		{ "inside", -ESTALE, -EOPNOTSUPP },
		{ "outside", -ESTALE, -EOPNOTSUPP },
		{ "dangling", -ESTALE, -EOPNOTSUPP },
		{ "directory/deep", 0, -EOPNOTSUPP, "deep" },
		{ "a/b/deep", 0, 0, "deep" },
	};
	const struct fixture *f = *state;

	link_to(f, "a/b/deep", "inside");
	link_to(f, "/etc/passwd", "outside");
	link_to(f, "nothing", "dangling");
	link_to(f, "/a/b", "directory");
	check_all(f->root, true, expected, ARRAY_SIZE(expected));
}

/* /proc/self/fd/N and similar links bypass every root. */
static void magic_links_are_not_followed(void **state)
{
	autoclose int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct fixture *f = *state;
	autoclose int secret = openat(f->top, "secret", O_RDONLY | O_CLOEXEC);
	char by_fd[32], by_directory[48];
	const struct expected expected[] = {
		{ by_fd, -ELOOP, -EOPNOTSUPP },
		{ by_directory, -ELOOP, -EOPNOTSUPP },
		{ "exe", -ELOOP, -EOPNOTSUPP },
		{ "root/etc/passwd", -ELOOP, -EOPNOTSUPP },
	};

	snprintf(by_fd, sizeof(by_fd), "fd/%d", secret);
	snprintf(by_directory, sizeof(by_directory), "fd/%d/secret", f->top);
	check_all(self, false, expected, ARRAY_SIZE(expected));
}

static void special_files_are_not_opened(void **state)
{
	static const struct expected expected[] = {
		{ "fifo", -ESTALE, -ESTALE },
		{ "a", -ESTALE, -ESTALE },
		{ "fifo/x", -ENOTDIR, -ENOTDIR },
	};
	const struct fixture *f = *state;

	assert_int_equal(mkfifoat(f->root, "fifo", 0600), 0);
	check_all(f->root, false, expected, ARRAY_SIZE(expected));
}

static void names_that_are_too_long(void **state)
{
	char longest[NAME_MAX + 8], too_long[NAME_MAX + 8];
	const struct expected expected[] = {
		{ longest, -ENOENT, -ENOENT },
		{ too_long, -ENAMETOOLONG, -ENAMETOOLONG },
	};
	const struct fixture *f = *state;

	snprintf(longest, sizeof(longest), "a/%0*d", NAME_MAX, 0);
	snprintf(too_long, sizeof(too_long), "a/%0*d", NAME_MAX + 1, 0);
	check_all(f->root, false, expected, ARRAY_SIZE(expected));
}

/* Some container runtimes do not know openat2() and fail it with EPERM; other errors are real. */
static void only_a_missing_call_is_made_up_for(void **state)
{
	static const struct refused_call calls[] = {
		{ .number = SYS_openat2, .error = EPERM },
		{ .number = SYS_openat2, .error = EACCES },
		{ .number = SYS_openat2, .error = EMFILE },
	};
	const struct fixture *f = *state;
	struct opening o = { .root = f->root, .path = "a/b/deep", .fd = -7 };

	check(&o, with_refused_call(&calls[1], open_it, &o), -EACCES, NULL);
	check(&o, with_refused_call(&calls[2], open_it, &o), -EMFILE, NULL);
	check(&o, with_refused_call(&calls[0], open_it, &o), 0, "deep");
}

static void a_root_that_is_not_a_directory(void **state)
{
	static const struct expected closed[] = { { "file", -EBADF, -EBADF } };
	static const struct expected no_directory[] = { { "file", -ENOTDIR, -ENOTDIR } };
	const struct fixture *f = *state;
	autoclose int secret = openat(f->top, "secret", O_RDONLY | O_CLOEXEC);

	check_all(-1, false, closed, ARRAY_SIZE(closed));
	check_all(secret, false, no_directory, ARRAY_SIZE(no_directory));
}

/* During a rename anywhere on the machine, the kernel cannot tell where `..` leads. */
static void renames_of_others_do_not_matter(void **state)
{
	const struct fixture *f = *state;
	struct opening o = { .root = f->root, .path = "a/../file", .fd = -7 };

	races = 20;
	check(&o, open_it(&o), 0, "theirs");
	assert_int_equal(races, 0);
	/* But it does not retry for ever. */
	o.fd = -7;
	races = 1000;
	check(&o, open_it(&o), -EAGAIN, NULL);
	assert_in_range(races, 1, 980);
	races = 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(components_one_after_the_other),
		CASE(dots_do_not_escape_the_root),
		CASE(links_do_not_escape_the_root),
		CASE(a_link_itself_is_refused),
		CASE(magic_links_are_not_followed),
		CASE(special_files_are_not_opened),
		CASE(names_that_are_too_long),
		CASE(only_a_missing_call_is_made_up_for),
		CASE(a_root_that_is_not_a_directory),
		CASE(renames_of_others_do_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
