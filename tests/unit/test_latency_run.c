/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom latency` with a fake sampler: what it tells, and the order of its steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "base/cleanup.h"
#include "tests/unit/command_fixture.h"
#include "tests/unit/command_sampler.h"
#include "tests/unit/elf_writer.h"
#include "symbolizer/indexer/writer/writer.h"

enum { AT = 0x401000 };

static struct command_run run;
static struct module module = { .number = 5, .path = (char *)"/usr/bin/app" };
static struct function_patterns wanted;
static struct index *module_index;

static int on_open(void *context, const struct process *p, const struct mapping *m, int *ret_fd)
{
	(void)context;
	(void)p;
	(void)m;
	(void)ret_fd;
	return -ENOENT;
}

static int setup(void **state)
{
	int err = report_setup(state);

	fake = (struct sampler){ .world = *state };
	run = (struct command_run){ 0 };
	return err;
}

static int teardown(void **state)
{
	probed_files_destroy(take(fake.probed_files));
	function_patterns_deinit(&wanted);
	index_destroy(take(module_index));
	return report_teardown(state);
}

/* An index of /usr/bin/app with the function `serve`, which has one return, and `loop` without. */
static struct index *index_of_app(void)
{
	struct index_writer *w = index_writer_create();
	const uint64_t at = AT + 8;
	struct writer_function function = { .address = AT, .return_count = 1 };
	autoclose int fd = memory_file("", 0);
	struct index *made = NULL;

	assert_int_equal(writer_segment(w, &(struct writer_segment){ 0x400000, 0x20000, 0 }), 0);
	assert_int_equal(writer_code(w, AT, 0x1000), 0);
	writer_source(w, INDEX_SOURCE_FUNCTIONS);
	assert_int_equal(writer_string(w, "serve", 5, &function.linkage), 0);
	assert_int_equal(writer_returns(w, &at, 1, &function.first_return), 0);
	assert_int_equal(writer_function(w, &function), 0);
	function =
		(struct writer_function){ .address = AT + 64, .flags = INDEX_FUNCTION_NO_RETURN };
	assert_int_equal(writer_string(w, "loop", 4, &function.linkage), 0);
	assert_int_equal(writer_function(w, &function), 0);
	assert_int_equal(writer_finish(w, fd), 0);
	index_writer_destroy(w);
	assert_int_equal(index_open(fd, &made), 0);
	return made;
}

static bool on_fibers(void *context, const struct index *of, struct abi_runtime_process *ret_how)
{
	(void)context;
	(void)of;
	(void)ret_how;
	return false;
}

/* What the sampler knows: PATTERN, and the index of /usr/bin/app if SEEN. */
static void knows(const char *pattern, bool seen)
{
	static const struct function_patterns none;
	const char *problem;

	assert_int_equal(function_patterns_add(&wanted, pattern, &problem), 0);
	assert_int_equal(probed_files_create(&(struct probed_files_options){ .wanted = &wanted,
						     .unwanted = &none,
						     .dry_run = true,
						     .max_functions = 10,
						     .open = on_open,
						     .fibers = on_fibers },
				 &fake.probed_files),
		0);
	if (!seen)
		return;
	module_index = index_of_app();
	assert_int_equal(probed_files_add(fake.probed_files, &module, dup(0), true), 0);
	probed_files_index(fake.probed_files, &module, module_index);
}

/* ---- the cases ------------------------------------------------------------------------------ */

static void without_rights_it_says_what_is_missing(void **)
{
	knows("main", false);
	fake.create_error = -EPERM;
	command_expect(&run, "latency -u /usr/bin/app:main -d1", EXIT_FAILED, "cannot load BPF");
	assert_string_equal(run.out, "");
	assert_null(strstr(run.err, "[start]"));
}

static void a_file_that_cannot_be_opened_ends_it(void **)
{
	knows("/bin/sh:main", false);
	fake.add_error = -EACCES;
	command_expect(&run, "latency -u /bin/sh:main -d1", EXIT_FAILED, ": Permission denied\n");
	assert_non_null(strstr(run.err, "[destroy]"));
	assert_null(strstr(run.err, "[start]"));
}

static void a_command_that_is_not_there_ends_it(void **)
{
	knows("main", false);
	command_expect(&run, "latency -u main -- no-such-program-here", EXIT_FAILED,
		"fathom latency: no-such-program-here: No such file or directory\n");
	assert_null(strstr(run.err, "[start]"));
}

static void an_impossible_output_is_reported_first(void **)
{
	knows("main", false);
	command_expect(&run, "latency -u /bin/sh:main --openmetrics /no/such/file -d1", EXIT_FAILED,
		"cannot write /no/such/file");
	assert_null(strstr(run.err, "[create"));
}

static void a_dry_run_lists_what_would_be_probed(void **)
{
	knows("/usr/bin/app:*", true);
	command_expect(&run, "latency --dry-run -u /usr/bin/app:*", EXIT_DONE, "");
	assert_non_null(strstr(run.out, "serve  /usr/bin/app"));
	assert_non_null(strstr(run.out, "loop"));
	assert_non_null(strstr(run.out, "it does not return"));
	assert_null(strstr(run.err, "[start]"));
	command_expect(&run, "latency --dry-run --json -u /usr/bin/app:*", EXIT_DONE, "");
	assert_int_equal(run.out[0], '{');
}

static void a_name_of_nothing_is_nothing_to_measure(void **)
{
	knows("/usr/bin/app:nothing", true);
	command_expect(&run, "latency -u /usr/bin/app:nothing -d1", EXIT_FAILED,
		"-u '/usr/bin/app:nothing': there is no such function\n");
	assert_non_null(strstr(run.err, "there is nothing to measure\n"));
	assert_null(strstr(run.err, "[start]"));
}

static void a_file_that_nobody_maps_is_waited_for(void **)
{
	knows("/usr/bin/other:main", false);
	fake.start_error = -EIO;
	command_expect(&run, "latency -u /usr/bin/other:main -d1", EXIT_FAILED,
		"-u '/usr/bin/other:main': no process maps such a file so far\n");
	assert_non_null(strstr(run.err, "waiting for a process with such functions\n"));
	assert_non_null(strstr(run.err, "cannot start: Input/output error\n"));
	assert_non_null(strstr(run.err, "[detach]"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_rights_it_says_what_is_missing),
		CASE(a_file_that_cannot_be_opened_ends_it),
		CASE(a_command_that_is_not_there_ends_it),
		CASE(an_impossible_output_is_reported_first),
		CASE(a_dry_run_lists_what_would_be_probed),
		CASE(a_name_of_nothing_is_nothing_to_measure),
		CASE(a_file_that_nobody_maps_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
