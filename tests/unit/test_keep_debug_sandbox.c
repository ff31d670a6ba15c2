/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a file for upload is stripped in the sandbox, and what the uploader is told. This program
 * is its own child; one letter in the "ELF file" tells the child what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/daemon/keep_debug.h"
#include "base/cleanup.h"
#include "symbolizer/sandbox/sandbox_wire.h"
#include "symbolizer/sandboxed/main.h"

/* ---- the child's side ----------------------------------------------------------------------- */

static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	char what = 0;

	(void)ret_result;
	/* A pipe: waits as for a file that does not answer. */
	if (lseek(files->elf_fd, 0, SEEK_SET) < 0)
		return (int)read(files->elf_fd, &what, 1);
	if (pread(files->elf_fd, &what, 1, 0) != 1)
		return -EIO;
	switch (what) {
	case 'w':
		return pwrite(files->output_fd, "stripped", 8, 0) == 8 ? 0 : -EIO;
	case 'n':
		return -ENODATA;
	case '2':
		return -E2BIG;
	case 'M': /* the machine has none left */
		return -ENOMEM;
	case 'c':
		__builtin_trap();
	default: /* never ends */
		if (pwrite(files->output_fd, "x", 1, 0) != 1)
			return -EIO;
		for (volatile unsigned int i = 0;; i++)
			;
	}
}

/* ---- the uploader's side -------------------------------------------------------------------- */

static struct keep_debug keep_debug;
/* Children wait for a file server: SIGKILL does nothing. */
static bool immortal;

int kill(pid_t pid, int number)
{
	return number == SIGKILL && immortal ? 0 : (int)syscall(SYS_kill, pid, number);
}

static int file_with(const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

/* STOP: the uploader is told to end. */
static int strip(const char *what, bool stop, int output_fd)
{
	autoclose int elf = file_with(what);
	autoclose int stop_fd = eventfd(stop, EFD_CLOEXEC);

	return keep_debug_in_sandbox(&keep_debug, elf, output_fd, stop_fd);
}

static int result_of(const char *what)
{
	autoclose int output = memfd_create("output", MFD_CLOEXEC);

	return strip(what, false, output);
}

static void output_of_the_child_is_kept(void **state)
{
	autoclose int output = memfd_create("output", MFD_CLOEXEC);
	char text[16] = "";

	(void)state;
	assert_int_equal(strip("w", false, output), 0);
	assert_int_equal(pread(output, text, sizeof(text), 0), 8);
	assert_string_equal(text, "stripped");
}

static void each_end_has_its_error(void **state)
{
	(void)state;
	assert_int_equal(result_of("n"), -ENODATA);
	assert_int_equal(result_of("2"), -E2BIG);
	assert_int_equal(result_of("M"), -EAGAIN);
	assert_int_equal(result_of("c"), -EBADMSG);
}

static void a_stopping_uploader_does_not_wait(void **state)
{
	autoclose int output = memfd_create("output", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(strip("l", true, output), -ECANCELED);
}

static void without_descriptors_it_is_retried(void **state)
{
	(void)state;
	assert_int_equal(keep_debug_in_sandbox(&keep_debug, -1, -1, -1), -EAGAIN);
}

/* Nobody waits until its child is gone, not even if that cannot be killed; some may be left so. */
static void a_file_that_does_not_answer_is_given_up(void **state)
{
	autoclose int output = memfd_create("output", MFD_CLOEXEC);
	autoclose int stop_fd = eventfd(0, EFD_CLOEXEC);
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	immortal = true;
	assert_int_equal(keep_debug_in_sandbox(&keep_debug, ends[0], output, stop_fd), -ETIMEDOUT);
	assert_int_equal(keep_debug.left_count, 1);
	assert_int_equal(strip("w", false, output), 0);
	assert_int_equal(strip("l", true, output), -ECANCELED);
	assert_int_equal(keep_debug.left_count, 2);
	while (keep_debug.left_count < KEEP_DEBUG_LEFT)
		assert_int_equal(strip("l", true, output), -ECANCELED);
	assert_int_equal(strip("w", false, output), -ETIMEDOUT);
	immortal = false;
	for (unsigned int i = 0; i < keep_debug.left_count; i++)
		kill(keep_debug.left[i].pid, SIGKILL);
	while (strip("w", false, output) == -ETIMEDOUT)
		usleep(10000);
	while (keep_debug.left_count)
		(void)strip("w", false, output);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	close(ends[0]);
	close(ends[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_of_the_child_is_kept),
		cmocka_unit_test(each_end_has_its_error),
		cmocka_unit_test(a_stopping_uploader_does_not_wait),
		cmocka_unit_test(without_descriptors_it_is_retried),
		cmocka_unit_test(a_file_that_does_not_answer_is_given_up),
	};

	if (argc > 1 && !strcmp(argv[1], SANDBOX_KEEP_DEBUG_COMMAND))
		return sandboxed_run(argc, argv, act);
	keep_debug_init(&keep_debug);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
