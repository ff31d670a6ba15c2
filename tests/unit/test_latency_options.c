/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `fathom latency`: what becomes of the settings, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/latency.h"
#include "base/cleanup.h"
#include "tests/unit/plan_fixture.h"

static struct latency_plan plan;

static int make_plan(const struct config *config)
{
	return latency_plan(config, &plan);
}

static void deinit_plan(void)
{
	latency_plan_deinit(&plan);
	plan = (struct latency_plan){ 0 };
}

static const struct planner planner = {
	.name = "latency",
	.command = IN_LATENCY,
	.make = make_plan,
	.deinit = deinit_plan,
};

/* ---- accepted -------------------------------------------------------------------------------- */

static void test_a_process(void **state)
{
	struct line line;

	(void)state;
	expect_plan(&line, "-p", own_pid(), "-u", "main.*", NULL);
	assert_int_equal(plan.sampling.collect.tgid_count, 1);
	assert_int_equal(plan.sampling.collect.tgids[0], getpid());
	assert_int_equal(plan.sampling.collect.filter.filter_tgids, 1);
	assert_int_equal(plan.sampling.collect.filter.self_tgid, getpid());
	assert_int_equal(plan.wanted.count, 1);
	assert_string_equal(plan.wanted.items[0].glob, "main.*");
	assert_int_equal(plan.unwanted.count, 0);
	assert_int_equal(plan.by, ABI_LATENCY_BY_FUNCTION);
	assert_int_equal(plan.duration_ns, 0);
	assert_int_equal(plan.interval_ns, 0);
	assert_false(plan.dry_run || plan.json || plan.exclude_vendor);
	assert_null(plan.openmetrics);
	assert_null(plan.profile);
	assert_null(plan.command);
	assert_string_equal(plan.sampler.cache_directory, plan.cache_directory);
	assert_string_equal(plan.sampler.debug_directories, "/usr/lib/debug");
	assert_int_equal(plan.sampler.cache_limit_bytes, UINT64_C(2) << 30);
	assert_int_equal(plan.sampler.memory_limit_bytes, 256 << 20);
	assert_int_equal(plan.sampler.profile_limit_bytes, 256 << 20);
	assert_int_equal(plan.sampler.collect.tgids[0], getpid());
	line_deinit(&line);
}

static void test_every_option(void **state)
{
	struct line line;

	(void)state;
	expect_plan(&line, "-u", "app:f", "--exclude", "g,h", "--exclude=x*", "--exclude-vendor",
		"--dry-run", "-d", "10", "-i", "500ms", "--by", "cgroup", "--openmetrics", "/tmp/x",
		"-o", "/tmp/y", NULL);
	assert_int_equal(plan.unwanted.count, 2);
	assert_string_equal(plan.unwanted.items[0].glob, "g,h");
	assert_string_equal(plan.unwanted.items[1].glob, "x*");
	assert_true(plan.exclude_vendor);
	assert_true(plan.dry_run);
	assert_true(plan.duration_ns == UINT64_C(10000000000));
	assert_true(plan.interval_ns == 500000000);
	assert_int_equal(plan.by, ABI_LATENCY_BY_CGROUP);
	assert_string_equal(plan.openmetrics, "/tmp/x");
	assert_string_equal(plan.profile, "/tmp/y");
	assert_int_equal(plan.sampling.collect.tgid_count, 0);
	line_deinit(&line);
	expect_plan(&line, "-u", "app:f", "--json", "--by=goid", NULL);
	assert_true(plan.json);
	assert_int_equal(plan.by, ABI_LATENCY_BY_FIBER);
	line_deinit(&line);
}

static void test_commas_belong_to_names(void **state)
{
	struct line line;

	(void)state;
	expect_plan(&line, "-u", "f(int, char*)", "-u", "g<a, b>", "--function=h\\,", "--", "app",
		NULL);
	assert_int_equal(plan.wanted.count, 3);
	assert_string_equal(plan.wanted.items[0].text, "f(int, char*)");
	assert_string_equal(plan.wanted.items[1].text, "g<a, b>");
	assert_string_equal(plan.wanted.items[2].text, "h\\,");
	line_deinit(&line);
}

static void test_the_command_line_replaces_the_environment(void **state)
{
	struct line line;

	(void)state;
	assert_int_equal(setenv("FATHOM_FUNCTION", "a:b\nc:d", 1), 0);
	expect_plan(&line, NULL);
	assert_int_equal(plan.wanted.count, 2);
	assert_string_equal(plan.wanted.items[1].text, "c:d");
	line_deinit(&line);
	expect_plan(&line, "-u", "e:f", NULL);
	assert_int_equal(plan.wanted.count, 1);
	assert_string_equal(plan.wanted.items[0].text, "e:f");
	line_deinit(&line);
	unsetenv("FATHOM_FUNCTION");
}

static void test_a_command(void **state)
{
	struct line line;

	(void)state;
	expect_plan(&line, "-u", "main", "--", "make", "-j8", NULL);
	assert_string_equal(plan.command[0], "make");
	assert_string_equal(plan.command[1], "-j8");
	assert_null(plan.command[2]);
	line_deinit(&line);
}

static void test_paths_are_resolved(void **state)
{
	char directory[] = "/tmp/latency-XXXXXX", path[64], cwd[4096];
	struct line line;

	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(directory), 0);
	fclose(fopen("app:1", "w"));
	assert_int_equal(symlink("app:1", "link"), 0);
	snprintf(path, sizeof(path), "%s/app:1", directory);

	expect_plan(&line, "-u", "./link:main.*", "-u", "./app\\:1:f", "-u", "/in/a/container:f",
		"-u", "link:f", "-u", "/opt/*/link:f", NULL);
	assert_string_equal(plan.wanted.items[0].resolved, path);
	assert_string_equal(plan.wanted.items[1].resolved, path);
	assert_null(plan.wanted.items[2].resolved);
	assert_null(plan.wanted.items[3].resolved);
	assert_null(plan.wanted.items[4].resolved);
	line_deinit(&line);
	expect_refusal(-EINVAL, "-u './none:f' No such file or directory", "-u", "./none:f", NULL);
	expect_refusal(-EINVAL,
		"-u './*:f' needs an absolute path before the colon, as the path has wildcards",
		"-u", "./*:f", NULL);

	unlink("app:1");
	unlink("link");
	assert_int_equal(chdir(cwd), 0);
	rmdir(directory);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void test_nothing_to_measure(void **state)
{
	(void)state;
	expect_refusal(-EINVAL,
		"-u or -k must name the functions to measure, for example -u 'main.*' or -k "
		"vfs_read",
		"-p", own_pid(), NULL);
	expect_refusal(-EINVAL,
		"-u 'main.*' needs a program: -p PID, -- CMD, or a file as in -u "
		"/usr/bin/app:PATTERN",
		"-u", "app:f", "-u", "main.*", NULL);
	expect_refusal(-EINVAL, "-u '' names no function", "-p", own_pid(), "-u", "", NULL);
	expect_refusal(-EINVAL, "-u ':f' names no file before the colon", "-u", ":f", NULL);
	expect_refusal(-EINVAL, "--exclude 'app:' names no function after the colon", "-u", "app:f",
		"--exclude", "app:", NULL);
}

static void test_kernel_functions(void **state)
{
	struct line line;

	(void)state;
	/* They need no process. */
	expect_plan(&line, "-k", "vfs_*", "-k", "tcp_sendmsg", "--exclude", "vfs_open", NULL);
	assert_int_equal(plan.wanted.count, 0);
	assert_int_equal(plan.kernel_wanted.count, 2);
	assert_string_equal(plan.kernel_wanted.items[1].glob, "tcp_sendmsg");
	assert_int_equal(plan.unwanted.count, 1);
	line_deinit(&line);
	expect_plan(&line, "-k", "vfs_read", "-u", "app:f", NULL);
	assert_int_equal(plan.wanted.count, 1);
	assert_int_equal(plan.kernel_wanted.count, 1);
	line_deinit(&line);
	expect_plan(&line, "-k", "vfs_read", "-o", "calls.pb.gz", NULL);
	assert_string_equal(plan.profile, "calls.pb.gz");
	line_deinit(&line);
	expect_refusal(-EINVAL,
		"-k 'ext4:f' has a file before the colon, but -k names functions of the kernel",
		"-k", "ext4:f", NULL);
	expect_refusal(-EINVAL, "-k '' names no function", "-k", "", NULL);
}

static void test_pattern_too_long(void **state)
{
	autofree char *pattern = calloc(1, 20000);
	char message[512];

	(void)state;
	assert_non_null(pattern);
	memset(pattern, 'x', 19999);
	snprintf(message, sizeof(message),
		"-u '%.200s…' is too long, or there are too many of them", pattern);
	expect_refusal(-EINVAL, message, "-u", pattern, NULL);
}

static void test_commands_and_processes(void **state)
{
	(void)state;
	expect_refusal(-EINVAL, "-- must be followed by a command", "-u", "f", "--", NULL);
	expect_refusal(-EINVAL,
		"unexpected argument './main'; a command to run goes after --, a file to measure "
		"into -u ./main:PATTERN",
		"-u", "main.add", "./main", NULL);
	expect_refusal(-EINVAL, "-p and a command exclude each other", "-p", own_pid(), "-u", "f",
		"--", "app", NULL);
	expect_refusal(-ESRCH, "there is no process 4194304", "-p", "4194304", "-u", "f", NULL);
}

static void test_times(void **state)
{
	(void)state;
	expect_refusal(-EINVAL, "-d must be more than 0 seconds", "-u", "a:f", "-d", "0", NULL);
	expect_refusal(-EINVAL, "-i must be 0.1 to 3600 seconds", "-u", "a:f", "-i", "0", NULL);
	expect_refusal(-EINVAL, "-i must be 0.1 to 3600 seconds", "-u", "a:f", "-i", "99ms", NULL);
	expect_refusal(-EINVAL, "-i must be 0.1 to 3600 seconds", "-u", "a:f", "-i", "61m", NULL);
	expect_refusal(
		-EINVAL, "-i must not be longer than -d", "-u", "a:f", "-i", "2", "-d", "1", NULL);
	expect_refusal(-EINVAL, "--interval soon: must be a time: 10 (seconds), 500ms, 2m, 1h",
		"-u", "a:f", "-i", "soon", NULL);
}

static void test_times_at_their_limits(void **state)
{
	struct line line;

	(void)state;
	expect_plan(&line, "-u", "a:f", "-i", "100ms", "-d", "100ms", NULL);
	line_deinit(&line);
	expect_plan(&line, "-u", "a:f", "-i", "1h", NULL);
	line_deinit(&line);
}

static void test_outputs(void **state)
{
	(void)state;
	expect_refusal(
		-EINVAL, "--by must be goid, pid or cgroup", "-u", "a:f", "--by", "thread", NULL);
	expect_refusal(-EINVAL, "--openmetrics needs a file: standard output has the report", "-u",
		"a:f", "--openmetrics", "-", NULL);
	expect_refusal(-EINVAL, "--openmetrics needs a file: standard output has the report", "-u",
		"a:f", "--openmetrics=", NULL);
	expect_refusal(-EINVAL, "-o needs a file: standard output has the report", "-u", "a:f",
		"-o", "-", NULL);
	expect_refusal(-EINVAL, "-o needs a file: standard output has the report", "-u", "a:f",
		"--output=", NULL);
	expect_refusal(-EINVAL, "unknown option --exclude-vendors: did you mean --exclude-vendor?",
		"-u", "a:f", "--exclude-vendors", NULL);
	expect_refusal(-EINVAL, "--memory-limit must be 1M or more", "-u", "a:f", "--memory-limit",
		"1K", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_process),
		cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_commas_belong_to_names),
		cmocka_unit_test(test_the_command_line_replaces_the_environment),
		cmocka_unit_test(test_a_command),
		cmocka_unit_test(test_paths_are_resolved),
		cmocka_unit_test(test_nothing_to_measure),
		cmocka_unit_test(test_kernel_functions),
		cmocka_unit_test(test_pattern_too_long),
		cmocka_unit_test(test_commands_and_processes),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_times_at_their_limits),
		cmocka_unit_test(test_outputs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
