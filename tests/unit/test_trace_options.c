/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `fathom trace`: what becomes of the settings, and what is refused. */
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

#include "agent/commands/trace.h"
#include "base/cleanup.h"
#include "tests/unit/plan_fixture.h"

static struct trace_plan plan;

static int make_plan(const struct config *config)
{
	return trace_plan(config, &plan);
}

static void deinit_plan(void)
{
	trace_plan_deinit(&plan);
	plan = (struct trace_plan){ 0 };
}

static const struct planner planner = {
	.name = "trace",
	.command = IN_TRACE,
	.make = make_plan,
	.deinit = deinit_plan,
};

/* ---- accepted -------------------------------------------------------------------------------- */

static void a_process(void **state)
{
	struct line line;

	(void)state;
	expect_plan(&line, "-p", own_pid(), "-u", "main.*", NULL);
	assert_string_equal(plan.probing.name, "trace");
	assert_int_equal(plan.probing.sampling.collect.tgids[0], getpid());
	assert_int_equal(plan.probing.wanted.count, 1);
	assert_int_equal(plan.named, 1);
	assert_int_equal(plan.drilldown.count, 0);
	assert_int_equal(plan.max_depth, 0);
	assert_int_equal(plan.min_duration_ns, 0);
	assert_int_equal(plan.max_events_per_second, 200000);
	assert_int_equal(plan.probing.duration_ns, 0);
	assert_null(plan.events);
	assert_null(plan.probing.command);
	assert_false(plan.probing.json || plan.probing.dry_run);
	assert_false(trace_rules_any(&plan.rules));
	line_deinit(&line);
}

static void every_option(void **state)
{
	struct line line;

	(void)state;
	expect_plan(&line, "-p", own_pid(), "-u", "main.*", "--exclude", "main.init*",
		"--exclude-vendor", "--max-depth", "3", "--min-duration", "5ms", "-d", "10",
		"--goid", "18", "-o", "/tmp/x.json", "-a", "main.f(n=%ax:s64)",
		"--test-events-per-second", "7", NULL);
	assert_string_equal(plan.probing.unwanted.items[0].glob, "main.init*");
	assert_true(plan.probing.exclude_vendor);
	assert_int_equal(plan.max_depth, 3);
	assert_int_equal(plan.min_duration_ns, 5000000);
	assert_true(plan.probing.duration_ns == UINT64_C(10000000000));
	assert_int_equal(plan.probing.sampler.collect.filter.fiber_id, 18);
	assert_string_equal(plan.events, "/tmp/x.json");
	assert_int_equal(plan.rules.count, 1);
	assert_true(trace_rules_any(&plan.rules));
	assert_int_equal(plan.max_events_per_second, 7);
	line_deinit(&line);
	expect_plan(&line, "-p", own_pid(), "-u", "f", "--json", "--args", NULL);
	assert_true(plan.probing.json);
	assert_true(trace_rules_any(&plan.rules));
	line_deinit(&line);
}

static void a_command(void **state)
{
	struct line line;

	(void)state;
	expect_plan(&line, "-u", "main.*", "--", "/bin/app", "-u", "x", NULL);
	assert_string_equal(plan.probing.command[0], "/bin/app");
	assert_string_equal(plan.probing.command[1], "-u");
	assert_int_equal(plan.probing.wanted.count, 1);
	line_deinit(&line);
}

/* Patterns without a file of their own are about the file of -x, in whose path nothing is special.
 */
static void a_file(void **state)
{
	struct line line;
	const struct function_patterns *wanted = &plan.probing.wanted;

	(void)state;
	expect_plan(&line, "-x", "/opt/a[b]*c", "-u", "f*", "-u", "libc:open", "--drilldown", "g",
		NULL);
	assert_int_equal(wanted->count, 3);
	assert_int_equal(plan.named, 2);
	assert_string_equal(wanted->items[0].glob, "f*");
	assert_true(function_pattern_names_file(&wanted->items[0], "/opt/a[b]*c"));
	assert_false(function_pattern_names_file(&wanted->items[0], "/opt/abxc"));
	assert_string_equal(wanted->items[1].binary, "libc");
	assert_string_equal(wanted->items[2].glob, "g");
	assert_int_equal(plan.drilldown.count, 1);
	assert_true(function_pattern_names_file(&plan.drilldown.items[0], "/opt/a[b]*c"));
	line_deinit(&line);
}

/* They are probed even if -u does not name them. */
static void functions_of_drilldown_are_wanted(void **state)
{
	struct line line;

	(void)state;
	expect_plan(
		&line, "-p", own_pid(), "-u", "f", "--drilldown", "g", "--drilldown", "h", NULL);
	assert_int_equal(plan.probing.wanted.count, 3);
	assert_int_equal(plan.named, 1);
	assert_string_equal(plan.probing.wanted.items[2].glob, "h");
	line_deinit(&line);
}

/* ---- refused --------------------------------------------------------------------------------- */

static void what_is_not_named_is_refused(void **state)
{
	(void)state;
	expect_refusal(-EINVAL,
		"-u or -k must name the functions to trace, for example -u 'main.*' or "
		"-k 'vfs_*'",
		"-p", own_pid(), NULL);
	expect_refusal(
		-EINVAL, "-u 'f' needs a program: -p PID, -x FILE, or -- CMD", "-u", "f", NULL);
	expect_refusal(-EINVAL, "--drilldown 'g' needs a program: -p PID, -x FILE, or -- CMD", "-u",
		"app:f", "--drilldown", "g", NULL);
	expect_refusal(-ESRCH, "there is no process 4194305", "-p", "4194305", "-u", "f", NULL);
	expect_refusal(-EINVAL, "-- must be followed by a command", "-u", "f", "--", NULL);
	expect_refusal(-EINVAL,
		"unexpected argument 'app'; a command to run goes after --, a file to trace into "
		"-x",
		"-u", "f", "app", NULL);
}

static void what_excludes_each_other_is_refused(void **state)
{
	static const char *const targets = "-p, -x and a command exclude each other";

	(void)state;
	expect_refusal(-EINVAL, targets, "-u", "f", "-p", own_pid(), "-x", "app", NULL);
	expect_refusal(-EINVAL, targets, "-u", "f", "-p", own_pid(), "--", "app", NULL);
	expect_refusal(-EINVAL, targets, "-u", "f", "-x", "app", "--", "app", NULL);
	expect_refusal(-EINVAL, "--json and -o exclude each other", "-u", "f", "-p", own_pid(),
		"--json", "-o", "x", NULL);
}

static void values_that_make_no_sense_are_refused(void **state)
{
	static const char *const binary = "-x needs the path or the name of a file, without ':'";
	static const char *const depth = "--max-depth must be 1 or more";

	(void)state;
	expect_refusal(-EINVAL, binary, "-u", "f", "-x", "", NULL);
	expect_refusal(-EINVAL, binary, "-u", "f", "-x", "a:b", NULL);
	expect_refusal(-EINVAL, "-d must be more than 0 seconds", "-u", "a:f", "-d", "0", NULL);
	expect_refusal(-EINVAL, depth, "-u", "a:f", "--max-depth", "0", NULL);
	expect_refusal(-EINVAL, depth, "-u", "a:f", "--max-depth", "4294967296", NULL);
	expect_refusal(-EINVAL, "-o needs a file: standard output has the summary", "-u", "a:f",
		"-o", "-", NULL);
	expect_refusal(-EINVAL, "-o needs a file: standard output has the summary", "-u", "a:f",
		"-o", "", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process),
		cmocka_unit_test(every_option),
		cmocka_unit_test(a_command),
		cmocka_unit_test(a_file),
		cmocka_unit_test(functions_of_drilldown_are_wanted),
		cmocka_unit_test(what_is_not_named_is_refused),
		cmocka_unit_test(what_excludes_each_other_is_refused),
		cmocka_unit_test(values_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
