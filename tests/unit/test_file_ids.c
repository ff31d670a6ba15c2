/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/file_ids.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "agent/process/proc_reader.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "tests/unit/fake_proc.h"

enum { PID = 42, START = 0x400000, END = 0x401000 };

struct fixture {
	struct fake_proc proc;
	struct file_ids *ids;
	struct fake_file file;
	struct proc_mapping mapping;
	int pid_fd;
};

static int set_up(void **state)
{
	const struct fake_process process = { .comm = "x", .maps = "" };
	struct fixture *f = calloc(1, sizeof(*f));

	fake_proc_init(&f->proc);
	fake_proc_process(&f->proc, PID, &process);
	fake_proc_elf(&f->proc, "lib", 1, &f->file);
	fake_proc_map_file(&f->proc, PID, START, END, f->file.path);
	f->mapping = (struct proc_mapping){ .start = START,
		.end = END,
		.device = f->file.device,
		.inode = f->file.inode,
		.path = f->file.path };
	*state = f;
	return proc_open(f->proc.fd, PID, &f->pid_fd) || file_ids_create(2, &f->ids);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	close(f->pid_fd);
	file_ids_destroy(f->ids);
	fake_proc_deinit(&f->proc);
	free(f);
	return 0;
}

/* Writes the content of another file into this one, at another time. */
static void rewrite(struct fixture *f, uint8_t build_id)
{
	const struct timespec times[2] = { { .tv_sec = 1000 + build_id },
		{ .tv_sec = 1000 + build_id } };
	autocall(buffer_deinit) struct buffer content;
	struct fake_file other;
	autoclose int fd = open(f->file.path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	buffer_init(&content, 1 << 20);
	fake_proc_elf(&f->proc, "other", build_id, &other);
	assert_int_equal(io_read_file(AT_FDCWD, other.path, &content), 0);
	assert_int_equal(io_write_all(fd, content.bytes, content.size), 0);
	assert_int_equal(futimens(fd, times), 0);
}

static void expect_build_id(struct fixture *f, int task_fd, uint8_t byte)
{
	struct module_id id = file_ids_get(f->ids, task_fd, &f->mapping);

	assert_int_equal(id.build_id.size, BUILD_ID_MAX_BYTES);
	assert_int_equal(id.build_id.bytes[0], byte);
	assert_int_equal(id.file.inode, 0);
}

static void a_file_is_looked_at_once_in_a_round(void **state)
{
	struct fixture *f = *state;

	expect_build_id(f, f->pid_fd, 1);
	rewrite(f, 2);
	expect_build_id(f, f->pid_fd, 1);
	file_ids_renew(f->ids);
	expect_build_id(f, f->pid_fd, 2);
}

/* The content is another one behind our back: what is not read cannot be noticed. */
static void an_unchanged_file_is_not_read_again(void **state)
{
	struct fixture *f = *state;
	struct stat before;
	int fd;

	expect_build_id(f, f->pid_fd, 1);
	assert_int_equal(stat(f->file.path, &before), 0);
	rewrite(f, 2);
	fd = open(f->file.path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(futimens(fd, (struct timespec[]){ before.st_atim, before.st_mtim }), 0);
	close(fd);
	file_ids_renew(f->ids);
	expect_build_id(f, f->pid_fd, 1);
}

static void what_cannot_be_reached_is_what_it_was(void **state)
{
	struct fixture *f = *state;
	struct module_id id = file_ids_get(f->ids, -1, &f->mapping);

	assert_int_equal(id.build_id.size, 0);
	assert_int_equal(id.file.device, f->file.device);
	assert_int_equal(id.file.inode, f->file.inode);
	assert_int_equal(id.file.mtime_ns, 0);
	expect_build_id(f, f->pid_fd, 1);
	file_ids_renew(f->ids);
	expect_build_id(f, -1, 1);
	fake_proc_remove(&f->proc, PID);
	expect_build_id(f, f->pid_fd, 1);
}

static void a_path_to_another_file_is_not_believed(void **state)
{
	struct fixture *f = *state;

	fake_proc_root(&f->proc, PID, "/");
	f->mapping.start++; /* no longer in map_files */
	expect_build_id(f, f->pid_fd, 1);
	f->mapping.inode++;
	assert_int_equal(file_ids_get(f->ids, f->pid_fd, &f->mapping).build_id.size, 0);
}

static void more_files_than_the_limit_begin_afresh(void **state)
{
	struct fixture *f = *state;

	for (uint8_t i = 1; i <= 20; i++) {
		fake_proc_elf(&f->proc, "lib", i, &f->file);
		f->mapping.inode = f->file.inode + i * UINT64_C(1000000);
		expect_build_id(f, f->pid_fd, i);
		expect_build_id(f, -1, i);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_file_is_looked_at_once_in_a_round),
		CASE(an_unchanged_file_is_not_read_again),
		CASE(what_cannot_be_reached_is_what_it_was),
		CASE(a_path_to_another_file_is_not_believed),
		CASE(more_files_than_the_limit_begin_afresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
