/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of builds while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/builds_fixture.h"

/* ---- inside the sandbox --------------------------------------------------------------------- */

static int write_index(int fd)
{
	const struct writer_segment segment = {
		.address = FUNCTION, .size = 4096, .file_off = FUNCTION
	};
	struct index_writer *w = index_writer_create();
	uint32_t name = 0;
	int err = w ? writer_segment(w, &segment) : -ENOMEM;

	if (!err)
		err = writer_string(w, "function", 8, &name);
	if (!err)
		err = writer_symbol(w, FUNCTION, 16, FUNCTION + 4096, name, WRITER_SYMBOL_GLOBAL);
	if (!err)
		err = writer_finish(w, fd);
	index_writer_destroy(w);
	return err;
}

static int act(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	char what;

	(void)ret_result;
	if (pread(files->elf_fd, &what, 1, 0) != 1)
		return -EIO;
	return write_index(files->output_fd);
}

/* ---- outside -------------------------------------------------------------------------------- */

static void on_done(void *context, uint64_t tag, struct index *index)
{
	struct fixture *f = context;

	assert_true(f->done_count < DONE_ROOM);
	f->done[f->done_count++] = (struct done_call){ .tag = tag, .index = index };
}

static void begin(void *context)
{
	struct fixture *f = context;

	*f = (struct fixture){ 0 };
	snprintf(f->directory, sizeof(f->directory), "/tmp/fathom-torture-builds-XXXXXX");
	assert_non_null(mkdtemp(f->directory));
	assert_int_equal(cache_create(f->directory, LIMIT, &f->cache), 0);
}

static int module_file(void)
{
	autoclose int fd = memfd_create("module", MFD_CLOEXEC);

	if (fd < 0 || write(fd, "i", 1) != 1)
		return -errno;
	return take_fd(&fd);
}

/* Runs until everything is answered; postponed work is due at once. */
static void run_to_the_end(struct fixture *f)
{
	while (builds_pending(f->builds)) {
		if (f->watched_count)
			run_loop_once(f);
		else
			builds_expire(f->builds, clock_monotonic_ns() + UINT64_C(60000000000));
	}
}

static int request(struct fixture *f, uint64_t tag)
{
	const struct module_id id = make_id(1);
	int fd = module_file();

	return fd < 0 ? fd : builds_request(f->builds, &id, fd, tag);
}

static int build_one(void *context)
{
	struct fixture *f = context;
	const struct builds_options options = {
		.cache = f->cache,
		.metrics = &f->metrics,
		.limits = { .memory_bytes = 256 << 20, .cpu_seconds = 10, .output_bytes = 1 << 20 },
		.max_children = 1,
		.max_waiting = 2,
		.watch = on_watch,
		.done = on_done,
		.context = f,
	};
	int err = builds_create(&options, &f->builds);

	if (err)
		return err;
	err = request(f, 7);
	run_to_the_end(f);
	return err;
}

/*
 * Each requester is answered once, or gets an error, after which no answer follows. A failure on
 * our side says nothing about the file, so it is built at the next request.
 */
static void is_answered_once(void *context, int result)
{
	struct fixture *f = context;
	const struct module_id id = make_id(1);

	assert_int_equal(f->done_count, result ? 0 : 1);
	assert_int_equal(f->watched_count, 0);
	assert_false(cache_failed(f->cache, &id));
	if (f->builds) {
		assert_int_equal(request(f, 8), 0);
		run_to_the_end(f);
		assert_int_equal(f->done[f->done_count - 1].tag, 8);
		assert_non_null(f->done[f->done_count - 1].index);
	}
	for (size_t i = 0; i < f->done_count; i++)
		index_destroy(f->done[i].index);
	builds_destroy(f->builds);
	cache_destroy(f->cache);
	empty_directory(f->directory);
	rmdir(f->directory);
}

static void a_request_is_answered_once_whatever_fails(void **state)
{
	struct fixture f;
	struct torture t = {
		.begin = begin,
		.operation = build_one,
		.end = is_answered_once,
		.context = &f,
		.optional = "*",
	};

	(void)state;
	torture_run(&t);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_request_is_answered_once_whatever_fails),
	};

	if (argc > 1 && sandboxed_is_command(argv[1]))
		return sandboxed_run(argc, argv, act);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
