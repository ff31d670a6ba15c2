/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose builds are next, and what they are charged with: the queue with real sandboxes, of several
 * owners. This program is its own child; its "ELF file" has one letter that tells it what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/builds_fixture.h"

enum { MAX_DONE = 32 };

/* ---- the child's side --------------------------------------------------------------------- */

static int write_index(int fd)
{
	struct index_writer *w = index_writer_create();
	struct writer_segment segment = { .address = FUNCTION, .size = 4096, .file_off = FUNCTION };
	int err = w ? writer_segment(w, &segment) : -ENOMEM;

	if (!err)
		err = writer_finish(w, fd);
	index_writer_destroy(w);
	return err;
}

static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	char what = 0;

	(void)ret_result;
	if (read(files->elf_fd, &what, 1) != 1)
		return -EIO;
	while (what == 'f') /* until it is killed */
		;
	return write_index(files->output_fd);
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

/* A request of OWNER whose child does WHAT. */
static int request_of(struct fixture *f, uint64_t owner, uint8_t number, char what)
{
	const struct debug_search search = {
		.owner = owner, .root_fd = -1, .path = "", .directories = ""
	};
	struct module_id id = make_id(number);
	int fd = memfd_create("module", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &what, 1, 0), 1);
	return builds_request_debug(f->builds, &id, fd, number, &search);
}

/* A request of OWNER whose child waits at a gate. Returns the gate. */
static int request_gated(struct fixture *f, uint64_t owner, uint8_t number)
{
	const struct debug_search search = {
		.owner = owner, .root_fd = -1, .path = "", .directories = ""
	};
	struct module_id id = make_id(number);
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(builds_request_debug(f->builds, &id, ends[0], number, &search), 0);
	return ends[1];
}

/* Owner 1 keeps all sandboxes busy for as long as it can; owner 2 comes late with one file. */
static void test_an_owner_without_builds_does_not_wait_for_one_with_many(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(request_of(f, 1, 1, 'f'), 0);
	assert_int_equal(request_of(f, 1, 2, 'f'), 0);
	assert_int_equal(request_of(f, 1, 3, 'i'), 0);
	assert_int_equal(f->watched_count, 2);
	assert_int_equal(request_of(f, 2, 4, 'i'), 0);
	assert_int_equal(f->watched_count, 3);
	/* The place was for owner 2 only. */
	run_until_done(f, 1);
	assert_int_equal(f->done[0].tag, 4);
	assert_non_null(f->done[0].index);
	assert_int_equal(f->watched_count, 2);
	assert_int_equal(builds_pending(f->builds), 3);
}

/* The place that becomes free is for the owner that has used less, not for the one that asked
 * first. */
static void test_owners_take_turns(void **state)
{
	struct fixture *f = *state;
	int two, three;

	assert_int_equal(request_of(f, 1, 1, 'i'), 0);
	run_until_done(f, 1);
	two = request_gated(f, 2, 2);
	three = request_gated(f, 3, 3);
	/* Owner 4 has used nothing; owner 1 a few milliseconds. */
	assert_int_equal(request_of(f, 1, 4, 'i'), 0);
	assert_int_equal(request_of(f, 4, 5, 'i'), 0);
	assert_int_equal(f->watched_count, 2);
	open_gate(two, 'i');
	run_until_done(f, 4);
	assert_int_equal(f->done[1].tag, 2);
	assert_int_equal(f->done[2].tag, 5);
	assert_int_equal(f->done[3].tag, 4);
	open_gate(three, 'i');
	run_until_done(f, 5);
}

/* However many files one owner has, there is a place in the queue for another's. */
static void test_one_owner_does_not_fill_the_queue(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(request_of(f, 1, 1, 'f'), 0);
	assert_int_equal(request_of(f, 1, 2, 'f'), 0);
	assert_int_equal(request_of(f, 1, 3, 'i'), 0);
	assert_int_equal(request_of(f, 1, 4, 'i'), 0);
	assert_int_equal(request_of(f, 1, 5, 'i'), -EAGAIN);
	assert_int_equal(builds_pending(f->builds), 4);
}

static uint64_t seconds(uint64_t number)
{
	return number * UINT64_C(1000000000);
}

/* All builds together get their share of CPU time, after a minute of it in advance. */
static void test_builds_are_charged_by_their_share(void **state)
{
	struct fixture *f = *state;
	uint64_t cpu_ns;

	assert_int_equal(request_of(f, 1, 1, 'i'), 0);
	run_until_done(f, 1);
	cpu_ns = builds_cpu_ns(f->builds);
	assert_true(cpu_ns > 0);
	/* Without a share everything is charged at once. */
	assert_int_equal(builds_charged_ns(f->builds), cpu_ns);
	builds_set_share(f->builds, 0.000001);
	assert_int_equal(request_of(f, 1, 2, 'i'), 0);
	run_until_done(f, 2);
	assert_true(builds_cpu_ns(f->builds) > cpu_ns);
	assert_int_equal(builds_charged_ns(f->builds), cpu_ns);
	builds_expire(f->builds, seconds(1000));
	builds_expire(f->builds, seconds(1001));
	assert_int_equal(builds_charged_ns(f->builds), cpu_ns + 1000);
	/* And never more than was used. */
	builds_expire(f->builds, seconds(2000000000));
	assert_int_equal(builds_charged_ns(f->builds), builds_cpu_ns(f->builds));
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_an_owner_without_builds_does_not_wait_for_one_with_many, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_owners_take_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_one_owner_does_not_fill_the_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_builds_are_charged_by_their_share, setup, teardown),
	};

	if (argc > 1 && !strcmp(argv[1], "index-module"))
		return sandboxed_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
