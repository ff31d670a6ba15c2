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
	kernel_functions_destroy(take(fake.kernel_functions));
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

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	while ((text = strstr(text, part))) {
		count++;
		text += strlen(part);
	}
	return count;
}

static void files_that_do_not_answer_are_asked_again(void **)
{
	knows("serve", true);
	fake.unanswered = 2;
	command_expect(&run, "latency -u serve --dry-run -p 1", 0, "");
	assert_int_equal(count_of(run.err, "[open again]"), 2);
	assert_int_equal(count_of(run.err, "[finish builds"), 3);
}

static void a_path_that_does_not_answer_is_asked_again(void **)
{
	knows("/bin/sh:main", false);
	fake.add_error = -EAGAIN;
	fake.unanswered = 2;
	command_expect(
		&run, "latency -u /bin/sh:main --dry-run", EXIT_FAILED, "nothing to measure");
	assert_int_equal(count_of(run.err, "[add "), 3);
}

static void what_a_misspelt_name_may_have_meant_is_said(void **)
{
	knows("srve", true);
	fake.hint = "ser\033ve";
	fake.hint_library = "/usr/lib/lib\033x.so.6";
	command_expect(&run, "latency -u srve -p 1 -d1", EXIT_FAILED, "nothing to measure");
	assert_non_null(strstr(run.err, "fathom latency: -u 'srve': did you mean ser?ve?\n"));
	assert_non_null(strstr(run.err, "fathom latency: lib?x.so.6 has srve: -u lib?x:srve\n"));
	assert_non_null(strstr(run.err, "[want libraries]"));
}

static void libraries_are_not_looked_into_for_patterns_with_a_file(void **)
{
	knows("app:srve", true);
	fake.hint_error = -ENOMEM;
	command_expect(&run, "latency -u app:srve -p 1 -d1", EXIT_FAILED, "nothing to measure");
	assert_null(strstr(run.err, "[want libraries]"));
	assert_null(strstr(run.err, "did you mean"));
}

static void a_command_that_is_not_there_ends_it(void **)
{
	knows("main", false);
	command_expect(&run, "latency -u main -- no-such-program-here", 127,
		"fathom latency: no-such-program-here: No such file or directory\n");
	assert_null(strstr(run.err, "[start]"));
}

static void an_impossible_output_is_reported_first(void **)
{
	knows("main", false);
	command_expect(&run, "latency -u /bin/sh:main --openmetrics /no/such/file -d1", EXIT_FAILED,
		"cannot write /no/such/file");
	assert_null(strstr(run.err, "[create"));
	command_expect(&run, "latency -u /bin/sh:main -o /no/such/file -d1", EXIT_FAILED,
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

/* What the sampler knows of kernel functions, as in a dry run on this machine. */
static void knows_kernel(const char *pattern, size_t limit)
{
	static const struct function_patterns none;
	static struct function_patterns kernel_wanted;
	const char *problem;

	function_patterns_deinit(&kernel_wanted);
	assert_int_equal(function_patterns_add(&kernel_wanted, pattern, &problem), 0);
	assert_int_equal(kernel_functions_create(
				 &(struct kernel_functions_options){ .wanted = &kernel_wanted,
					 .unwanted = &none,
					 .max_functions = limit },
				 &fake.kernel_functions),
		0);
	assert_int_equal(probed_files_create(&(struct probed_files_options){ .wanted = &none,
						     .unwanted = &none,
						     .dry_run = true,
						     .max_functions = 10 },
				 &fake.probed_files),
		0);
	function_patterns_deinit(&kernel_wanted);
}

static void a_kernel_function_that_does_not_exist_is_said(void **)
{
	knows_kernel("no_such_function_here", 10);
	command_expect(&run, "latency -k no_such_function_here -d1", EXIT_FAILED,
		"fathom latency: -k 'no_such_function_here': the kernel has no such function\n");
	assert_null(strstr(run.err, "[start]"));
}

static void too_many_kernel_functions_are_refused(void **)
{
	if (geteuid())
		skip(); /* the kernel hides its addresses */
	knows_kernel("vfs_*", 3);
	command_expect(&run, "latency -k vfs_* -d1", EXIT_FAILED,
		"functions, 3 are possible at once; a narrower pattern or --exclude helps\n");
	assert_non_null(strstr(run.err, "kernel functions cannot be probed: the patterns name "));
	assert_null(strstr(run.err, "[start]"));
}

static void kernel_functions_are_listed_by_a_dry_run(void **)
{
	if (geteuid())
		skip(); /* the kernel hides its addresses */
	knows_kernel("vfs_read", 3);
	command_expect(&run, "latency --dry-run -k vfs_read", EXIT_DONE, "");
	assert_non_null(strstr(run.out, "vfs_read  kernel"));
	assert_null(strstr(run.err, "[start]"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_rights_it_says_what_is_missing),
		CASE(a_file_that_cannot_be_opened_ends_it),
		CASE(files_that_do_not_answer_are_asked_again),
		CASE(a_path_that_does_not_answer_is_asked_again),
		CASE(what_a_misspelt_name_may_have_meant_is_said),
		CASE(libraries_are_not_looked_into_for_patterns_with_a_file),
		CASE(a_command_that_is_not_there_ends_it),
		CASE(an_impossible_output_is_reported_first),
		CASE(a_dry_run_lists_what_would_be_probed),
		CASE(a_name_of_nothing_is_nothing_to_measure),
		CASE(a_file_that_nobody_maps_is_waited_for),
		CASE(a_kernel_function_that_does_not_exist_is_said),
		CASE(too_many_kernel_functions_are_refused),
		CASE(kernel_functions_are_listed_by_a_dry_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
