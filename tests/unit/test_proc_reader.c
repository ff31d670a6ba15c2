/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/proc_reader.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <cmocka.h>

#include "agent/sampler/process/proc_maps.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "tests/unit/fake_proc.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { PID = 42 };

static bool parse(const char *text, struct proc_mapping *ret_mapping, char line[256])
{
	snprintf(line, 256, "%s", text);
	return proc_maps_parse(line, strlen(text), ret_mapping);
}

static void lines_of_maps(void **state)
{
	struct proc_mapping m;
	char line[256];

	(void)state;
	assert_true(
		parse("7f0000001000-7f0000003000 r-xp 00002000 fd:1a 1234567  /a b (x)", &m, line));
	assert_int_equal(m.start, 0x7f0000001000);
	assert_int_equal(m.end, 0x7f0000003000);
	assert_int_equal(m.file_off, 0x2000);
	assert_int_equal(m.device, makedev(0xfd, 0x1a));
	assert_int_equal(m.inode, 1234567);
	assert_true(m.executable);
	assert_string_equal(m.path, "/a b (x)");
	assert_true(parse("00400000-00401000 rw-p 00000000 00:00 0 ", &m, line));
	assert_false(m.executable);
	assert_string_equal(m.path, "");
	assert_true(parse("ffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]", &m, line));
	assert_string_equal(m.path, "[vsyscall]");
	assert_true(parse("1000-2000 r-xp 0 00:00 7 /a\\012b\\", &m, line));
	assert_string_equal(m.path, "/a\nb\\");
}

static void broken_lines_of_maps(void **state)
{
	static const char whole[] = "1000-2000 r-xp 0 00:00 7";
	static const char *const lines[] = {
		"2000-1000 r-xp 0 00:00 7 /a",
		"1000-1000 r-xp 0 00:00 7 /a",
		"11111111111111111-2 r-xp 0 00:00 7 /a",
		"1000 2000 r-xp 0 00:00 7 /a",
		"1000-2000 r-x 0 00:00 7 /a",
		"1000-2000 r-xp x 00:00 7 /a",
		"1000-2000 r-xp 0 00.00 7 /a",
		"1000-2000 r-xp 0 00:00 99999999999999999999 /a",
		"-2000 r-xp 0 00:00 7 /a",
	};
	struct proc_mapping m;
	char line[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_false(parse(lines[i], &m, line));
	for (size_t size = 0; size < strlen(whole); size++) {
		memcpy(line, whole, sizeof(whole));
		assert_false(proc_maps_parse(line, size, &m));
	}
	assert_true(parse(whole, &m, line));
	memcpy(line, "1000-2000 r-xp 0 00:00 7 /a\0b", 29);
	assert_false(proc_maps_parse(line, 29, &m));
}

struct seen {
	unsigned int lines;
	uint64_t last_start;
	int answer;
};

static int note(void *context, const struct proc_mapping *mapping)
{
	struct seen *seen = context;

	seen->lines++;
	seen->last_start = mapping->start;
	return seen->answer;
}

/*
 * Several reads' worth of maps, with a line longer than the buffer and a line of nonsense. The
 * remainder of the long line looks like a mapping, wherever a buffer of a round size cuts it.
 */
static void a_long_file_of_maps(void **state)
{
	autocall(buffer_deinit) struct buffer text;
	struct fake_process process = { .comm = "x" };
	struct seen seen = { 0 };
	struct fake_proc proc;
	int fd;

	(void)state;
	buffer_init(&text, 1 << 20);
	for (uint64_t i = 1; i <= 1000; i++)
		buffer_printf(
			&text, "%lx000-%lx800 r-xp 00000000 00:00 %lu /lib/%lu\n", i, i, i, i);
	for (int i = 0; i < 40000 / 32; i++)
		buffer_string(&text, "7ff0-7ff1 r-xp 0 00:00 1 /long /");
	buffer_string(&text, "\nnonsense\n8000000-8001000 r-xp 0 00:00 5 /last\n");
	buffer_append(&text, "", 1);
	assert_int_equal(text.error, 0);
	process.maps = (const char *)text.bytes;
	fake_proc_init(&proc);
	fake_proc_process(&proc, PID, &process);
	assert_int_equal(proc_open(proc.fd, PID, &fd), 0);
	assert_int_equal(proc_maps_read(fd, note, &seen), 0);
	assert_int_equal(seen.lines, 1001);
	assert_int_equal(seen.last_start, 0x8000000);
	seen = (struct seen){ .answer = -ENOMEM };
	assert_int_equal(proc_maps_read(fd, note, &seen), -ENOMEM);
	assert_int_equal(seen.lines, 1);
	close(fd);
	fake_proc_deinit(&proc);
}

static int stat_of(const char *text, struct proc_stat *ret_stat)
{
	const struct fake_process process = { .comm = "x", .maps = "" };
	struct fake_proc proc;
	int fd, err;

	fake_proc_init(&proc);
	fake_proc_process(&proc, PID, &process);
	fake_proc_write(&proc, PID, "stat", text);
	assert_int_equal(proc_open(proc.fd, PID, &fd), 0);
	err = proc_read_stat(fd, ret_stat);
	close(fd);
	fake_proc_deinit(&proc);
	return err;
}

static void stat_with_any_name(void **state)
{
	struct proc_stat stat;

	(void)state;
	assert_int_equal(
		stat_of("42 (a\n) S (1) Z 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 7 0 99 5\n",
			&stat),
		0);
	assert_string_equal(stat.comm, "a\n) S (1");
	assert_int_equal(stat.state, 'Z');
	assert_int_equal(stat.threads, 7);
	assert_int_equal(stat.start_ticks, 99);
	assert_false(stat.kernel_thread);
}

static void broken_stat(void **state)
{
	struct proc_stat stat;

	(void)state;
	assert_int_equal(stat_of("", &stat), -EBADMSG);
	assert_int_equal(stat_of("42 x", &stat), -EBADMSG);
	assert_int_equal(stat_of(")(", &stat), -EBADMSG);
	assert_int_equal(stat_of("42 (x) S 1 1", &stat), -EBADMSG);
	assert_int_equal(
		stat_of("42 (x) S 1 1 1 0 -1 x 0 0 0 0 0 0 0 0 20 0 7 0 99 5\n", &stat), -EBADMSG);
}

static void pids_of_the_innermost_namespace(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint32_t pid;
	} cases[] = {
		{ "Name:\tNSpid:\nNSpid:\t42\n", 0, 42 },
		{ "Name:\tx\nNSpid:\t42\t7\t3\nNSpgid:\t9\n", 0, 3 },
		{ "Name:\tx\n", -ENOENT, 0 },
		{ "Name:\tx\nNSpid:\n", -EBADMSG, 0 },
		{ "Name:\tx\nNSpid:\tx\n", -EBADMSG, 0 },
		{ "Name:\tx\nNSpid:\t42\t0\n", -EBADMSG, 0 },
		{ "Name:\tx\nNSpid:\t42\t4294967295\n", -EBADMSG, 0 },
	};
	const struct fake_process process = { .comm = "x", .maps = "" };
	struct fake_proc proc;
	int fd;

	(void)state;
	fake_proc_init(&proc);
	fake_proc_process(&proc, PID, &process);
	assert_int_equal(proc_open(proc.fd, PID, &fd), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t pid = 0;

		fake_proc_write(&proc, PID, "status", cases[i].text);
		assert_int_equal(proc_read_namespace_pid(fd, &pid), cases[i].err);
		assert_int_equal(pid, cases[i].pid);
	}
	close(fd);
	assert_int_equal(proc_open(proc.fd, PID + 1, &fd), -ESRCH);
	fake_proc_deinit(&proc);
}

/* NSpid follows the list of groups, which may have 65,536 entries. */
static void a_process_of_many_groups_has_its_pid(void **state)
{
	static const char head[] = "Name:\tx\nGroups:\t", group[] = "4294967290 ",
			  tail[] = "\nNSpid:\t42\t7\nNSpgid:\t9\n";
	enum { GROUPS = 65536, TOO_MANY = 4 * GROUPS };
	char *text = malloc(sizeof(head) + TOO_MANY * strlen(group) + sizeof(tail)), *at;
	const struct fake_process process = { .comm = "x", .maps = "" };
	struct fake_proc proc;
	uint32_t pid = 0;
	int fd;

	(void)state;
	assert_non_null(text);
	fake_proc_init(&proc);
	fake_proc_process(&proc, PID, &process);
	assert_int_equal(proc_open(proc.fd, PID, &fd), 0);
	for (int many = 0; many <= 1; many++) {
		at = stpcpy(text, head);
		for (int i = 0; i < (many ? TOO_MANY : GROUPS); i++)
			at = stpcpy(at, group);
		(void)stpcpy(at, tail);
		fake_proc_write(&proc, PID, "status", text);
		assert_int_equal(proc_read_namespace_pid(fd, &pid), many ? -E2BIG : 0);
		assert_int_equal(pid, 7);
	}
	close(fd);
	fake_proc_deinit(&proc);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_maps),
		cmocka_unit_test(broken_lines_of_maps),
		cmocka_unit_test(a_long_file_of_maps),
		cmocka_unit_test(stat_with_any_name),
		cmocka_unit_test(broken_stat),
		cmocka_unit_test(pids_of_the_innermost_namespace),
		cmocka_unit_test(a_process_of_many_groups_has_its_pid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
