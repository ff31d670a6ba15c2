/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/file_ids.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "agent/sampler/process/proc_reader.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "tests/unit/direct_build_ids.h"
#include "tests/unit/fake_proc.h"

enum { PID = 42, START = 0x400000, END = 0x401000 };

/* Answers like direct_build_ids, but fails with ERROR if that is not 0; keeps the question. */
struct moody_reader {
	struct build_id_reader reader;
	int error;
	unsigned int questions;
	struct build_id_question last;
};

static int moody_read(
	void *context, const struct build_id_question *question, struct build_id *ret_id)
{
	struct moody_reader *m = context;

	m->questions++;
	m->last = *question;
	return m->error ? m->error : direct_build_ids.read(NULL, question, ret_id);
}

struct fixture {
	struct moody_reader reader;
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
	f->reader.reader = (struct build_id_reader){ .read = moody_read, .context = &f->reader };
	*state = f;
	return proc_open(f->proc.fd, PID, &f->pid_fd) ||
	       file_ids_create(2, &f->reader.reader, &f->ids);
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
	struct module_id id = file_ids_get(f->ids, task_fd, &f->mapping, NULL);

	assert_int_equal(id.build_id.size, BUILD_ID_MAX_BYTES);
	assert_int_equal(id.build_id.bytes[0], byte);
	assert_int_equal(id.file.inode, f->file.inode);
}

static void a_file_is_examined_once_per_round(void **state)
{
	struct fixture *f = *state;

	expect_build_id(f, f->pid_fd, 1);
	rewrite(f, 2);
	expect_build_id(f, f->pid_fd, 1);
	file_ids_renew(f->ids);
	expect_build_id(f, f->pid_fd, 2);
}

static void an_unchanged_file_is_not_read_again(void **state)
{
	struct fixture *f = *state;

	expect_build_id(f, f->pid_fd, 1);
	file_ids_renew(f->ids);
	expect_build_id(f, f->pid_fd, 1);
	assert_int_equal(f->reader.questions, 1);
}

/* Its size and modification time are those of before. */
static void a_file_that_was_written_to_is_read_again(void **state)
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
	expect_build_id(f, f->pid_fd, 2);
}

/* Of a forged twin nothing differs that is read. */
static void two_files_are_never_one_module(void **state)
{
	struct fixture *f = *state;
	struct module_id first = file_ids_get(f->ids, f->pid_fd, &f->mapping, NULL), second;
	struct fake_file twin;

	fake_proc_elf(&f->proc, "twin", 1, &twin);
	f->mapping.start += 0x1000;
	f->mapping.end += 0x1000;
	f->mapping.inode = twin.inode;
	f->mapping.path = twin.path;
	fake_proc_map_file(&f->proc, PID, f->mapping.start, f->mapping.end, twin.path);
	second = file_ids_get(f->ids, f->pid_fd, &f->mapping, NULL);
	assert_true(build_id_equal(&first.build_id, &second.build_id));
	assert_true(file_hash_equal(&first.content, &second.content));
	assert_false(module_id_equal(&first, &second));
}

static void an_unreachable_file_keeps_its_identity(void **state)
{
	struct fixture *f = *state;
	struct module_id id;

	f->mapping.path = "/nowhere";
	id = file_ids_get(f->ids, -1, &f->mapping, NULL);
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

static void a_path_to_another_file_is_not_trusted(void **state)
{
	struct fixture *f = *state;

	fake_proc_root(&f->proc, PID, "/");
	f->mapping.start++; /* no longer in map_files */
	expect_build_id(f, f->pid_fd, 1);
	f->mapping.inode++;
	assert_int_equal(file_ids_get(f->ids, f->pid_fd, &f->mapping, NULL).build_id.size, 0);
}

static void more_files_than_the_limit_restart_the_table(void **state)
{
	struct fixture *f = *state;

	for (uint8_t i = 1; i <= 20; i++) {
		fake_proc_elf(&f->proc, "lib", i, &f->file);
		f->mapping.inode = f->file.inode + i * UINT64_C(1000000);
		expect_build_id(f, f->pid_fd, i);
		expect_build_id(f, -1, i);
	}
}

static void without_its_process_it_is_found_by_path_and_numbers(void **state)
{
	struct fixture *f = *state;

	expect_build_id(f, -1, 1);
	f->mapping.inode++;
	assert_int_equal(file_ids_get(f->ids, -1, &f->mapping, NULL).build_id.size, 0);
}

/* Until the file is read, its inode identifies it. */
static void a_failed_read_is_repeated(void **state)
{
	static const int transient[] = { -EAGAIN, -EIO, -EMFILE };
	struct fixture *f = *state;
	struct module_id id;

	for (size_t i = 0; i < ARRAY_SIZE(transient); i++) {
		f->reader.error = transient[i];
		id = file_ids_get(f->ids, f->pid_fd, &f->mapping, NULL);
		assert_int_equal(id.build_id.size, 0);
		assert_true(file_hash_is_none(&id.content));
		assert_int_equal(id.file.inode, f->file.inode);
		assert_int_equal(f->reader.questions, i + 1);
	}
	/* A failure of the reader is not a shortage of ours: /proc is not read again for it. */
	assert_int_equal(file_ids_shortages(f->ids), 1);
	f->reader.error = 0;
	expect_build_id(f, f->pid_fd, 1);
}

static void the_absence_of_a_build_id_is_remembered(void **state)
{
	struct fixture *f = *state;
	struct module_id id;

	f->reader.error = -EBADMSG;
	for (int i = 0; i < 2; i++) {
		id = file_ids_get(f->ids, f->pid_fd, &f->mapping, NULL);
		assert_int_equal(id.build_id.size, 0);
		assert_false(file_hash_is_none(&id.content));
	}
	assert_int_equal(f->reader.questions, 1);
}

/* The kernel may know the build ID of what it maps, but only if that is the file that was opened.
 */
static void the_question_names_the_mapping_that_the_file_was_opened_by(void **state)
{
	struct fixture *f = *state;

	expect_build_id(f, f->pid_fd, 1);
	assert_int_equal(f->reader.last.task_fd, f->pid_fd);
	assert_int_equal(f->reader.last.start, START);
	assert_int_equal(f->reader.last.end, END);
	f->mapping.start++; /* no longer in map_files */
	rewrite(f, 2);
	file_ids_renew(f->ids);
	expect_build_id(f, f->pid_fd, 2);
	assert_int_equal(f->reader.last.task_fd, -1);
}

/* What a record says. */
static struct module_id told(struct fixture *f, int task_fd, uint64_t generation)
{
	f->mapping.generation = generation;
	return file_ids_get(f->ids, task_fd, &f->mapping, &f->file.build_id);
}

static void a_known_file_in_a_record_is_not_examined_again(void **state)
{
	struct fixture *f = *state;
	struct module_id id, again;

	id = told(f, f->pid_fd, 5);
	assert_false(file_hash_is_none(&id.content));
	fake_proc_remove(&f->proc, PID);
	file_ids_renew(f->ids);
	assert_true(file_ids_known(f->ids, &f->mapping, &f->file.build_id, &again));
	assert_true(module_id_equal(&id, &again));
	/* The inode number has been reused by another file. */
	f->mapping.generation = 6;
	assert_false(file_ids_known(f->ids, &f->mapping, &f->file.build_id, &again));
	f->mapping.generation = 5;
	f->file.build_id.bytes[0]++;
	assert_false(file_ids_known(f->ids, &f->mapping, &f->file.build_id, &again));
	assert_false(file_ids_known(f->ids, &f->mapping, NULL, &again));
}

static void equal_build_ids_do_not_merge_files(void **state)
{
	struct fixture *f = *state;
	struct module_id seen = told(f, f->pid_fd, 5), unseen, other;

	f->mapping.path = "/nowhere";
	f->mapping.inode++;
	unseen = told(f, -1, 5);
	assert_true(build_id_equal(&unseen.build_id, &seen.build_id));
	assert_true(file_hash_is_none(&unseen.content));
	assert_false(module_id_equal(&unseen, &seen));
	f->mapping.inode++;
	other = told(f, -1, 5);
	assert_false(module_id_equal(&unseen, &other));
}

static void two_files_with_one_build_id_stay_separate(void **state)
{
	struct fixture *f = *state;
	struct module_id first = told(f, f->pid_fd, 5), second;
	int fd = open(f->file.path, O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, "code", 4), 4);
	close(fd);
	file_ids_renew(f->ids);
	second = told(f, f->pid_fd, 6);
	assert_true(build_id_equal(&first.build_id, &second.build_id));
	assert_false(file_hash_is_none(&second.content));
	assert_false(module_id_equal(&first, &second));
}

/* The file was replaced between the record and the read. */
static void a_file_that_contradicts_its_record_is_ignored(void **state)
{
	struct fixture *f = *state;
	struct module_id id;

	rewrite(f, 2);
	id = told(f, f->pid_fd, 5);
	assert_true(build_id_equal(&id.build_id, &f->file.build_id));
	assert_true(file_hash_is_none(&id.content));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_file_is_examined_once_per_round),
		CASE(an_unchanged_file_is_not_read_again),
		CASE(a_file_that_was_written_to_is_read_again),
		CASE(two_files_are_never_one_module),
		CASE(an_unreachable_file_keeps_its_identity),
		CASE(a_path_to_another_file_is_not_trusted),
		CASE(without_its_process_it_is_found_by_path_and_numbers),
		CASE(a_failed_read_is_repeated),
		CASE(the_absence_of_a_build_id_is_remembered),
		CASE(the_question_names_the_mapping_that_the_file_was_opened_by),
		CASE(a_known_file_in_a_record_is_not_examined_again),
		CASE(equal_build_ids_do_not_merge_files),
		CASE(two_files_with_one_build_id_stay_separate),
		CASE(a_file_that_contradicts_its_record_is_ignored),
		CASE(more_files_than_the_limit_restart_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
