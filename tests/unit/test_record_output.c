/* SPDX-License-Identifier: Apache-2.0 */
/* Where a recording goes, and the summary at its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/commands/record.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "tests/unit/refused_call.h"

static char directory[] = "/tmp/fathom-test-XXXXXX";
static char output[16384];

static const char *below(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void content_is(const char *path, const char *expected)
{
	char text[64];
	ssize_t size = io_read_line(AT_FDCWD, path, text, sizeof(text));

	assert_true(size >= 0);
	assert_string_equal(text, expected);
}

static int write_text(const char *path, const char *text)
{
	struct buffer bytes;
	int err;

	buffer_init(&bytes, 64);
	assert_int_equal(buffer_string(&bytes, text), 0);
	err = output_file_write(path, &bytes);
	buffer_deinit(&bytes);
	return err;
}

static void a_file_is_replaced_as_a_whole(void **state)
{
	int before;
	char old[8] = { 0 };

	(void)state;
	assert_int_equal(write_text(below("f"), "first"), 0);
	before = open(below("f"), O_RDONLY);
	assert_int_equal(output_file_check(below("f")), 0);
	assert_int_equal(write_text(below("f"), "2nd"), 0);
	content_is(below("f"), "2nd");
	/* A reader that has the old file open keeps it. */
	assert_int_equal(read(before, old, 7), 5);
	assert_string_equal(old, "first");
	close(before);
	unlink(below("f"));
}

static void a_pipe_is_written_in_place(void **state)
{
	char text[8] = { 0 };
	int reader;

	(void)state;
	assert_int_equal(mkfifo(below("pipe"), 0600), 0);
	assert_int_equal(output_file_check(below("pipe")), 0);
	reader = open(below("pipe"), O_RDONLY | O_NONBLOCK);
	assert_int_equal(write_text(below("pipe"), "text"), 0);
	assert_int_equal(read(reader, text, sizeof(text)), 4);
	assert_string_equal(text, "text");
	close(reader);
	unlink(below("pipe"));
}

static void unwritable_outputs_are_detected_in_advance(void **state)
{
	char longest[5000];

	(void)state;
	assert_int_equal(output_file_check("-"), 0);
	assert_int_equal(output_file_check("in-this-directory"), 0);
	assert_int_equal(output_file_check("/in-the-root"), access("/", W_OK) ? -errno : 0);
	assert_int_equal(output_file_check("/dev/null"), 0);
	assert_int_equal(output_file_check(directory), -EISDIR);
	assert_int_equal(output_file_check(below("no/such")), -ENOENT);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = 0;
	longest[4095] = '/';
	assert_int_equal(output_file_check(longest), -ENAMETOOLONG);
	longest[4095] = 'x';
	longest[4094] = '/';
	longest[0] = '/';
	assert_int_equal(output_file_check(longest), -ENAMETOOLONG); /* the kernel's limit */
	assert_int_equal(write_text(directory, "x"), -EISDIR);
	assert_int_equal(write_text(below("no/such"), "x"), -ENOENT);
	assert_int_equal(write_text("/dev/full", "x"), -ENOSPC);
}

static int check_null(void *context)
{
	(void)context;
	return output_file_check("/dev/null");
}

static int check_file(void *context)
{
	(void)context;
	return output_file_check(below("f"));
}

static int check_in_root(void *context)
{
	(void)context;
	return output_file_check("/in-the-root");
}

static void a_place_that_may_not_be_written_is_refused(void **state)
{
	static const struct refused_call cases[] = {
		{ SYS_access, EROFS, 0 },
		{ SYS_faccessat, EROFS, 0 },
	};
	int in_root = access("/", W_OK) ? -errno : 0; /* the root need not be writable here */
	bool refused = false;

	(void)state;
	/* Depending on the C library, access() makes one call or the other. */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int null = with_refused_call(&cases[i], check_null, NULL);

		assert_int_equal(with_refused_call(&cases[i], check_file, NULL), null);
		assert_int_equal(
			with_refused_call(&cases[i], check_in_root, NULL), null ? null : in_root);
		assert_true(!null || null == -EROFS);
		refused |= null != 0;
	}
	assert_true(refused);
}

/* ---- the summary ----------------------------------------------------------------------------- */

static const char *printed(const struct record_result *result)
{
	FILE *file = tmpfile();
	int before = dup(STDERR_FILENO);
	size_t size;

	fflush(NULL);
	dup2(fileno(file), STDERR_FILENO);
	record_print_result(result);
	fflush(NULL);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	size = fread(output, 1, sizeof(output) - 1, file);
	output[size] = 0;
	fclose(file);
	return output;
}

static void nothing_sampled_says_why(void **state)
{
	struct metrics metrics = { 0 };
	struct record_result r = { .metrics = &metrics };

	(void)state;
	assert_string_equal(printed(&r), "\nsamples:  0 in 0.0 s\n"
					 "          the selected processes or threads were on no "
					 "CPU when samples were taken\n"
					 "lost:     0\n"
					 "indexes:  0 from the cache, 0 built\n"
					 "own CPU:  0.0 ms\n");
	/* Lost samples explain it better; a wait shows that it is not the reason. */
	metrics_add(&metrics, METRIC_LOST_RING_FULL, 1);
	assert_null(strstr(printed(&r), "on no CPU"));
	metrics = (struct metrics){ 0 };
	r.summary.of[PROBE_off_cpu].count = 1;
	assert_null(strstr(printed(&r), "on no CPU"));
}

static void a_run_is_summed_up(void **state)
{
	static char java[] = "java", none[] = "", app[] = "app", file[] = "/nowhere/app";
	static const struct report_nameless nameless[] = {
		{ .program = java, .file = none, .pid = 42, .count = 100, .total = 120 },
		{ .program = app, .file = file, .why = NAMELESS_STRIPPED, .count = 3, .total = 40 },
	};
	static const struct report_hot hot[] = {
		{ .name = "main", .module = "app", .self_count = 150, .total_count = 200 },
		{ .name = "[unknown]", .module = "", .self_count = 1, .total_count = 1 },
	};
	struct metrics metrics = { 0 };
	struct record_result r = {
		.metrics = &metrics,
		.summary = { .of[SAMPLE_TYPE_TICKS].count = 200,
			.user_stacks = 180,
			.complete_stacks = 171,
			.user_frames = 160,
			.named_user_frames = 80 },
		.hot = hot,
		.hot_count = 2,
		.cpu_ns = 3000000,
		.start_cpu_ns = 1000000,
		.builds_cpu_ns = 4560000,
		.bpf_ns = 5000,
		.bpf_runs = 2,
		.elapsed_ns = 12340000000,
		.nameless = nameless,
		.nameless_count = 2,
		.output = "p.pb.gz",
	};

	(void)state;
	metrics_add(&metrics, METRIC_INDEX_CACHE_HITS, 7);
	metrics_add(&metrics, METRIC_INDEX_BUILDS_OK, 8);
	assert_string_equal(printed(&r),
		"\n   self  total  function\n"
		"  75.0% 100.0%  main  app\n"
		"   0.5%   0.5%  [unknown]  \n"
		"\nsamples:  200 in 12.3 s\n"
		"lost:     0\n"
		"stacks:   95.0% of user stacks complete, 50.0% of user samples named\n"
		"unnamed:  java, 50.0% of all samples: JIT code without a perf map: jcmd 42 "
		"Compiler.perfmap; its callers need -XX:+PreserveFramePointer\n"
		"          app, 1.5% of all samples: no symbols in /nowhere/app: install its debug "
		"symbols, set --debuginfod-urls, or do not strip it\n"
		"indexes:  7 from the cache, 8 built\n"
		"own CPU:  3.0 ms, 1.0 ms of it to start, then 10.0 us per sample; "
		"indexing new modules 4.6 ms; in BPF 2.50 us per sample\n"
		"\nwrote p.pb.gz; look at it with: fathom view p.pb.gz, or go tool pprof -http=: "
		"p.pb.gz\n");
	r.everything = true;
	assert_non_null(strstr(printed(&r), "go tool pprof -http=: -tagroot=comm p.pb.gz\n"));
}

static void waits_have_lines_of_their_own(void **state)
{
	struct metrics metrics = { 0 };
	struct record_result r = {
		.metrics = &metrics,
		.summary.of = { [SAMPLE_TYPE_TICKS].count = 3,
			[PROBE_off_cpu] = { 1, 1500000000 } },
		.cpu_ns = 4000,
		.bpf_ns = 9000,
		.bpf_runs = 3,
		.output = "p",
		.off_cpu = true,
	};

	(void)state;
	assert_string_equal(printed(&r),
		"\nsamples:  3 in 0.0 s\n"
		"waits:    1 completed, 1.500 s in total\n"
		"lost:     0\n"
		"indexes:  0 from the cache, 0 built\n"
		"own CPU:  0.0 ms, 1.0 us per sample or wait; "
		"in BPF 3.00 us per sample or context switch\n"
		"\nwrote p; look at it with: fathom view p, or go tool pprof -http=: p\n"
		"at waiting: go tool pprof -http=: -sample_index=off_cpu p\n");
	r.output = NULL;
	assert_null(strstr(printed(&r), "pprof"));
}

static void losses_are_reported_with_their_reasons(void **state)
{
	struct metrics metrics = { 0 };
	struct record_result r = { .metrics = &metrics, .summary.of[SAMPLE_TYPE_TICKS].count = 1 };

	(void)state;
	metrics_add(&metrics, METRIC_LOST_RING_FULL, 5);
	metrics_add(&metrics, METRIC_LOST_MEMORY_LIMIT, 2);
	metrics_add(&metrics, METRIC_UNWIND_NO_TABLE, 8);
	metrics_add(&metrics, METRIC_UNNAMED_GONE, 9);
	metrics_add(&metrics, METRIC_UNNAMED_EXECUTING, 1);
	metrics_add(&metrics, METRIC_FIBER_LABELS_UNREADABLE, 3);
	metrics_add(&metrics, METRIC_FIBER_FACTS_MISSING, 1);
	assert_string_equal(printed(&r), "\nsamples:  1 in 0.0 s\n"
					 "lost:     7 (ring_full 5, memory_limit 2)\n"
					 "          8 user stacks truncated (no_table 8)\n"
					 "          10 samples without names because the code they "
					 "ran is not known for certain "
					 "(process_gone 9, executing 1)\n"
					 "          4 samples of Go programs without some of their "
					 "pprof labels (unreadable 3, ring_full 1)\n"
					 "indexes:  0 from the cache, 0 built\n"
					 "own CPU:  0.0 ms, 0.0 us per sample\n");
}

static void each_trouble_has_a_line(void **state)
{
	static const struct {
		enum metric id;
		const char *line;
	} troubles[] = {
		{ METRIC_STACK_MISSING, "samples without a stack because a ring buffer was full" },
		{ METRIC_SIDEBAND_GAPS, "times that records of processes and mappings were lost" },
		{ METRIC_LOST_SIDEBAND, "records that the kernel dropped" },
		{ METRIC_PROCESS_RESYNCS, "processes read again from /proc" },
		{ METRIC_MODULE_OPEN_FAILED, "mapped files that could not be opened" },
		{ METRIC_INDEX_BUILDS_BAD_INPUT, "mapped files that are not readable ELF files" },
		{ METRIC_INDEX_BUILDS_LIMIT, "modules too large to index" },
		{ METRIC_INDEX_BUILDS_CRASH, "modules whose index builder crashed" },
		{ METRIC_GO_UNKNOWN_VERSION, "Go programs without goroutine IDs" },
		{ METRIC_FIBERS_UNREADABLE, "samples of Go programs whose goroutine" },
		{ METRIC_FIBERS_DROPPED, "goroutine IDs dropped" },
	};
	struct metrics metrics = { 0 };
	struct record_result r = { .metrics = &metrics, .summary.of[SAMPLE_TYPE_TICKS].count = 1 };
	char line[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(troubles); i++) {
		assert_null(strstr(printed(&r), troubles[i].line));
		metrics_add(&metrics, troubles[i].id, 40 + i);
		snprintf(line, sizeof(line), "\n          %zu %s", 40 + i, troubles[i].line);
		assert_non_null(strstr(printed(&r), line));
	}
}

static void ended_targets_are_reported(void **state)
{
	struct metrics metrics = { 0 };
	struct record_result r = { .metrics = &metrics, .summary.of[SAMPLE_TYPE_TICKS].count = 1 };

	(void)state;
	assert_null(strstr(printed(&r), "all selected processes"));
	r.targets_ended = true;
	assert_non_null(
		strstr(printed(&r), "          all selected processes or threads have ended\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_replaced_as_a_whole),
		cmocka_unit_test(a_pipe_is_written_in_place),
		cmocka_unit_test(unwritable_outputs_are_detected_in_advance),
		cmocka_unit_test(a_place_that_may_not_be_written_is_refused),
		cmocka_unit_test(nothing_sampled_says_why),
		cmocka_unit_test(a_run_is_summed_up),
		cmocka_unit_test(waits_have_lines_of_their_own),
		cmocka_unit_test(losses_are_reported_with_their_reasons),
		cmocka_unit_test(each_trouble_has_a_line),
		cmocka_unit_test(ended_targets_are_reported),
	};
	int failed;

	if (!mkdtemp(directory) || chdir(directory))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
