/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/sampler/collect/cpus.h"
#include "tests/unit/refused_call.h"

static void expect_list(const char *text, const int *numbers, size_t count)
{
	struct cpu_list list;

	assert_int_equal(cpu_list_parse(text, &list), 0);
	assert_int_equal(list.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(list.numbers[i], numbers[i]);
	cpu_list_deinit(&list);
}

static void single_numbers_and_ranges(void **state)
{
	(void)state;
	expect_list("0", (const int[]){ 0 }, 1);
	expect_list("0-3", (const int[]){ 0, 1, 2, 3 }, 4);
	expect_list("0,2-3,8", (const int[]){ 0, 2, 3, 8 }, 4);
	expect_list("5-5", (const int[]){ 5 }, 1);
}

static void expect_error(const char *text, int err)
{
	struct cpu_list list = { .count = 77 };

	assert_int_equal(cpu_list_parse(text, &list), err);
	assert_int_equal(list.count, 77);
}

static void malformed_lists_are_refused(void **state)
{
	static const char *const bad[] = { "", ",", "1,", "-1", "1-", "3-1", "1,1", "2,1", "1 2",
		"0x1", "1-2-3", "1;2", "0-3\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_error(bad[i], -EBADMSG);
}

static void numbers_over_the_limit_are_refused(void **state)
{
	(void)state;
	expect_error("8192", -E2BIG);
	expect_error("0-99999999999999999999", -E2BIG);
}

static void the_highest_number_is_taken(void **state)
{
	struct cpu_list list;

	(void)state;
	expect_list("8191", (const int[]){ 8191 }, 1);
	assert_int_equal(cpu_list_parse("0-8191", &list), 0);
	assert_int_equal(list.count, 8192);
	assert_int_equal(list.numbers[8191], 8191);
	cpu_list_deinit(&list);
}

static int read_online(void *context)
{
	return cpu_list_online(context);
}

static void an_unreadable_file_is_an_error(void **state)
{
	static const struct refused_call no_files = { .number = SYS_openat, .error = EACCES };
	struct cpu_list list = { .count = 77 };

	(void)state;
	assert_int_equal(with_refused_call(&no_files, read_online, &list), -EACCES);
	assert_int_equal(list.count, 77);
}

static void online_cpus_are_those_of_sysconf(void **state)
{
	struct cpu_list list;

	(void)state;
	assert_int_equal(cpu_list_online(&list), 0);
	assert_int_equal(list.count, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(cpu_list_has(&list, list.numbers[0]));
	assert_false(cpu_list_has(&list, 8191));
	cpu_list_deinit(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single_numbers_and_ranges),
		cmocka_unit_test(malformed_lists_are_refused),
		cmocka_unit_test(numbers_over_the_limit_are_refused),
		cmocka_unit_test(the_highest_number_is_taken),
		cmocka_unit_test(an_unreadable_file_is_an_error),
		cmocka_unit_test(online_cpus_are_those_of_sysconf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
