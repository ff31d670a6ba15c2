/* SPDX-License-Identifier: Apache-2.0 */
/* Text to a pipe that is read, not read, or closed: the writer never waits while the loop runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/commands/trace_output.h"
#include "agent/loop/loop.h"
#include "base/cleanup.h"

enum { LIMIT = 16 << 20, LARGE = 20 << 20 };

struct fixture {
	struct loop *loop;
	int read_fd, write_fd;
	struct trace_output out;
	struct buffer text;
	unsigned int failures;
	char *got;
	size_t wanted, read;
};

static void on_failed(void *context)
{
	struct fixture *f = context;

	f->failures++;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	f->read_fd = fds[0];
	f->write_fd = fds[1];
	assert_int_equal(fcntl(f->read_fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(loop_create(&f->loop), 0);
	trace_output_init(&f->out, f->loop, f->write_fd, on_failed, f);
	buffer_init(&f->text, 64 << 20);
	f->got = malloc(2 * LARGE);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	trace_output_deinit(&f->out);
	loop_destroy(f->loop);
	buffer_deinit(&f->text);
	close(f->write_fd);
	if (f->read_fd >= 0)
		close(f->read_fd);
	free(f->got);
	free(f);
	return 0;
}

/* Adds SIZE times LETTER, and ends the last line. */
static bool add(struct fixture *f, char letter, size_t size)
{
	autofree char *line = malloc(size);

	assert_non_null(line);
	memset(line, letter, size);
	line[size - 1] = '\n';
	f->text.size = 0;
	assert_int_equal(buffer_append(&f->text, line, size), 0);
	return trace_output_add(&f->out, &f->text);
}

static void take_some(struct fixture *f)
{
	ssize_t size;

	while ((size = read(f->read_fd, f->got + f->read, 2 * LARGE - f->read)) > 0)
		f->read += (size_t)size;
}

static void on_readable(void *context, int fd, uint32_t epoll_events)
{
	struct fixture *f = context;

	(void)fd;
	(void)epoll_events;
	take_some(f);
	if (f->read >= f->wanted)
		loop_stop(f->loop);
}

/* Lets the loop run until the reader has SIZE bytes. */
static void read_all(struct fixture *f, size_t size)
{
	f->wanted = size;
	assert_int_equal(loop_add(f->loop, f->read_fd, EPOLLIN, on_readable, f), 0);
	assert_int_equal(loop_run(f->loop), 0);
	loop_remove(f->loop, f->read_fd);
	assert_int_equal(f->read, size);
}

static void text_is_written_at_once(void **state)
{
	struct fixture *f = *state;

	assert_true(add(f, 'a', 100));
	take_some(f);
	assert_int_equal(f->read, 100);
	assert_int_equal(f->got[98], 'a');
	assert_int_equal(trace_output_finish(&f->out), 0);
}

static void what_nobody_reads_is_kept_up_to_a_limit(void **state)
{
	struct fixture *f = *state;
	size_t added = 0, refused = 0;

	for (int i = 0; i < 40; i++) {
		if (add(f, 'a', 1 << 20))
			added += 1 << 20;
		else
			refused++;
	}
	assert_true(refused > 20);
	assert_in_range(added, LIMIT, LIMIT + (2 << 20));
	read_all(f, added);
	assert_true(add(f, 'b', 10));
	read_all(f, added + 10);
	assert_int_equal(f->failures, 0);
}

/* A tree that is larger than the limit is printed, too. */
static void one_text_may_be_larger_than_the_limit(void **state)
{
	struct fixture *f = *state;

	assert_true(add(f, 'a', LARGE));
	assert_false(add(f, 'b', 10));
	read_all(f, LARGE);
	assert_true(add(f, 'c', 10));
	read_all(f, LARGE + 10);
	assert_null(memchr(f->got, 'b', f->read));
	assert_int_equal(f->got[LARGE], 'c');
}

/* Who else writes to the pipe does not get into the middle of a line. */
static void what_is_written_at_once_ends_with_a_line(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 100; i++)
		assert_true(add(f, 'a', 1000));
	assert_true(f->out.pending.size > f->out.written);
	take_some(f);
	assert_true(f->read > 4096);
	assert_int_equal(f->got[f->read - 1], '\n');
}

static void a_reader_who_leaves_ends_it(void **state)
{
	struct fixture *f = *state;

	close(take_fd(&f->read_fd));
	assert_true(add(f, 'a', 100));
	assert_int_equal(f->failures, 1);
	assert_int_equal(f->out.error, -EPIPE);
	assert_false(add(f, 'a', 100));
	assert_int_equal(trace_output_finish(&f->out), -EPIPE);
	assert_int_equal(f->failures, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(text_is_written_at_once),
		CASE(what_nobody_reads_is_kept_up_to_a_limit),
		CASE(one_text_may_be_larger_than_the_limit),
		CASE(what_is_written_at_once_ends_with_a_line),
		CASE(a_reader_who_leaves_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
