/* SPDX-License-Identifier: Apache-2.0 */
/* The table of runtimes, with rows of the test and with Go's. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/sampler/runtimes/runtimes.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/go/go.h"
#include "symbolizer/indexer/writer/writer.h"

enum { PID = 100, GENERATION = 7, EXEC_ID = 3, FIRST_KIND = 40, LAST_KIND = 41 };

static const uint32_t of_sample = EXEC_ID;

/* Indexes that the test's rows tell apart by their addresses. */
static const char native_program, supported_program, movable_program, unsupported_program;
static const struct index *const native = (const void *)&native_program;
static const struct index *const supported = (const void *)&supported_program;
static const struct index *const movable = (const void *)&movable_program;
static const struct index *const unsupported = (const void *)&unsupported_program;

/* What BPF was given last. */
struct fixture {
	struct runtimes runtimes;
	struct metrics metrics;
	struct abi_runtime_process passed;
	unsigned int sets, removes;
	int error; /* of the following calls of set() */
};

static int set(void *context, uint32_t tgid, const struct abi_runtime_process *how)
{
	struct fixture *f = context;

	assert_int_equal(tgid, PID);
	f->sets++;
	if (!f->error)
		f->passed = *how;
	return f->error;
}

static void removed(void *context, uint32_t tgid)
{
	struct fixture *f = context;

	assert_int_equal(tgid, PID);
	f->removes++;
}

/* ---- the rows ------------------------------------------------------------------------------- */

static bool never_detect(const struct index *index)
{
	(void)index;
	return false;
}

static bool test_detect(const struct index *index)
{
	return index == supported || index == movable || index == unsupported;
}

static int test_configure(
	const struct index *index, const uint64_t *load_bias, struct abi_runtime_process *ret_how)
{
	if (index == unsupported)
		return -EOPNOTSUPP;
	if (index == movable && !load_bias)
		return -EAGAIN;
	*ret_how = (struct abi_runtime_process){ .kind = 9,
		.go.g_m = index == movable ? (uint32_t)*load_bias : 48 };
	return 0;
}

static void test_unsupported(
	void *state, const struct runtime_program *program, struct metrics *metrics)
{
	assert_non_null(state);
	assert_int_equal(program->pid, PID);
	metrics_add(metrics, METRIC_GO_UNKNOWN_VERSION, 1);
}

/* The row's state is the cookie of the newest sampled frame. */
static int test_create(struct metrics *metrics, void **ret_state)
{
	assert_non_null(metrics);
	*ret_state = calloc(1, sizeof(uint32_t));
	return *ret_state ? 0 : -ENOMEM;
}

static void test_sampled(void *state, const struct runtime_frame *frame)
{
	assert_int_equal(frame->pid, PID);
	*(uint32_t *)state = frame->frame.cookie;
}

static void test_names(void *state, const struct runtime_frame *frame, struct runtime_names *names)
{
	assert_int_equal(frame->pid, PID);
	assert_int_equal(frame->generation, GENERATION);
	names->mapping = "[testvm]";
	names->line_count = *(uint32_t *)state == frame->frame.cookie;
	names->lines[0] = (struct index_frame){ .name = "f", .line = frame->frame.position };
}

static const struct runtime_fibers coroutines = { "coroutine", "coroutines", "CORO" };
static const struct runtime with_coroutines = { .fibers = &coroutines };
static const struct runtime nothing = { .detect = never_detect };
static const struct runtime test_runtime = {
	.detect = test_detect,
	.configure = test_configure,
	.unsupported = test_unsupported,
	.first_frame_kind = FIRST_KIND,
	.frame_kind_count = LAST_KIND - FIRST_KIND + 1,
	.create = test_create,
	.destroy = free,
	.sampled = test_sampled,
	.names = test_names,
};
static const struct runtime *const rows[] = { &nothing, &test_runtime };

static int setup_with(void **state, const struct runtime *const *table, size_t count)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return runtimes_init(&f->runtimes, &(struct runtimes_options){ .set = set,
						   .remove = removed,
						   .context = f,
						   .metrics = &f->metrics,
						   .rows = table,
						   .row_count = count });
}

static int setup(void **state)
{
	return setup_with(state, rows, sizeof(rows) / sizeof(*rows));
}

static int setup_with_the_programs_rows(void **state)
{
	return setup_with(state, NULL, 0);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	runtimes_deinit(&f->runtimes);
	free(f);
	return 0;
}

static void program(struct fixture *f, const struct index *index, const uint32_t *exec_id)
{
	runtimes_program(&f->runtimes,
		&(struct runtime_program){
			.pid = PID, .generation = GENERATION, .exec_id = exec_id, .index = index });
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void a_program_without_a_runtime_is_left_alone(void **state)
{
	struct fixture *f = *state;

	assert_false(runtimes_has(&f->runtimes, native));
	program(f, native, NULL);
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	runtimes_ended(&f->runtimes, GENERATION);
	assert_int_equal(f->sets, 0);
	assert_int_equal(f->removes, 0);
}

static void the_first_row_that_detects_configures(void **state)
{
	struct fixture *f = *state;

	assert_true(runtimes_has(&f->runtimes, supported));
	program(f, supported, NULL);
	assert_int_equal(f->sets, 1);
	assert_int_equal(f->passed.kind, 9);
	assert_int_equal(f->passed.go.g_m, 48);
	assert_int_equal(f->passed.generation, GENERATION);
	assert_int_equal(f->passed.exec_known, 0);
	program(f, supported, NULL);
	assert_int_equal(f->sets, 1);
}

static void the_exec_id_is_passed_to_bpf_once_it_is_known(void **state)
{
	struct fixture *f = *state;

	program(f, supported, NULL);
	runtimes_bind(&f->runtimes, GENERATION + 1, &of_sample);
	runtimes_bind(&f->runtimes, GENERATION, NULL);
	assert_int_equal(f->sets, 1);
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	assert_int_equal(f->sets, 2);
	assert_int_equal(f->passed.exec_known, 1);
	assert_int_equal(f->passed.exec_id, EXEC_ID);
}

static void an_exec_id_of_0_is_valid(void **state)
{
	const uint32_t exec_id = 0;
	struct fixture *f = *state;

	program(f, supported, &exec_id);
	assert_int_equal(f->passed.exec_known, 1);
	assert_int_equal(f->passed.exec_id, 0);
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	assert_int_equal(f->sets, 1);
}

static void an_unsupported_program_is_counted_once_and_not_passed_on(void **state)
{
	struct fixture *f = *state;

	program(f, unsupported, NULL);
	program(f, unsupported, NULL);
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	assert_int_equal(metrics_get(&f->metrics, METRIC_GO_UNKNOWN_VERSION), 1);
	runtimes_ended(&f->runtimes, GENERATION);
	assert_int_equal(f->sets, 0);
	assert_int_equal(f->removes, 0);
}

static void an_end_removes_only_its_own_entry(void **state)
{
	struct fixture *f = *state;

	program(f, supported, NULL);
	runtimes_ended(&f->runtimes, GENERATION);
	runtimes_ended(&f->runtimes, GENERATION);
	assert_int_equal(f->removes, 1);
	f->error = -E2BIG;
	program(f, supported, NULL);
	runtimes_ended(&f->runtimes, GENERATION);
	assert_int_equal(f->removes, 1);
	f->error = 0;
	runtimes_retry(&f->runtimes);
	assert_int_equal(f->sets, 2);
}

/* A retry uses the exec id that samples reported meanwhile. */
static void a_refused_entry_is_repeated_at_a_retry(void **state)
{
	struct fixture *f = *state;

	f->error = -E2BIG;
	program(f, supported, NULL);
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	assert_int_equal(f->sets, 1);
	runtimes_retry(&f->runtimes);
	assert_int_equal(f->sets, 2);
	assert_int_equal(metrics_get(&f->metrics, METRIC_RUNTIMES_REFUSED), 1);
	f->error = 0;
	runtimes_retry(&f->runtimes);
	assert_int_equal(f->sets, 3);
	assert_int_equal(f->passed.exec_id, EXEC_ID);
	assert_int_equal(f->passed.exec_known, 1);
	runtimes_retry(&f->runtimes);
	assert_int_equal(f->sets, 3);
}

static void a_refused_exec_id_is_repeated_with_the_next_sample(void **state)
{
	struct fixture *f = *state;

	program(f, supported, NULL);
	f->error = -ENOMEM;
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	f->error = 0;
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	assert_int_equal(f->passed.exec_known, 1);
	runtimes_ended(&f->runtimes, GENERATION);
	assert_int_equal(f->removes, 1);
}

/* Its facts are those of each process. */
static void where_a_library_is_decides_how_it_is_read(void **state)
{
	const uint64_t bias = 0x7000;
	struct runtime_program of = {
		.pid = PID, .generation = GENERATION, .index = movable, .is_library = true
	};
	struct abi_runtime_process how;
	struct fixture *f = *state;

	runtimes_program(&f->runtimes, &of);
	runtimes_ended(&f->runtimes, GENERATION);
	assert_int_equal(f->sets, 0);
	of.load_bias = &bias;
	runtimes_program(&f->runtimes, &of);
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	assert_int_equal(f->sets, 2);
	assert_int_equal(f->passed.go.g_m, bias);
	assert_int_equal(f->passed.exec_id, EXEC_ID);
	assert_false(runtimes_configure(&f->runtimes, movable, &how));
	assert_true(runtimes_configure(&f->runtimes, supported, &how));
}

static void a_process_keeps_its_first_library(void **state)
{
	struct runtime_program of = {
		.pid = PID, .generation = GENERATION, .index = supported, .is_library = true
	};
	const uint64_t bias = 0x7000;
	struct fixture *f = *state;

	runtimes_program(&f->runtimes, &of);
	of.index = movable;
	of.load_bias = &bias;
	runtimes_program(&f->runtimes, &of);
	of.index = unsupported;
	runtimes_program(&f->runtimes, &of);
	assert_int_equal(f->sets, 1);
	assert_int_equal(f->passed.go.g_m, 48);
	assert_int_equal(metrics_get(&f->metrics, METRIC_GO_UNKNOWN_VERSION), 0);
}

/* One that is not supported, too: its threads may run goroutines of either. */
static void a_program_replaces_its_libraries(void **state)
{
	struct runtime_program of = {
		.pid = PID, .generation = GENERATION, .index = supported, .is_library = true
	};
	struct fixture *f = *state;

	runtimes_program(&f->runtimes, &of);
	program(f, native, NULL);
	program(f, movable, NULL); /* not mapped yet */
	assert_int_equal(f->removes, 0);
	program(f, unsupported, NULL);
	assert_int_equal(f->removes, 1);
	runtimes_program(&f->runtimes, &of);
	assert_int_equal(f->sets, 1);
	runtimes_ended(&f->runtimes, GENERATION);
	program(f, supported, NULL);
	runtimes_program(&f->runtimes, &of);
	assert_int_equal(f->sets, 2);
	assert_int_equal(f->removes, 1);
}

static void a_child_has_its_parents_library(void **state)
{
	struct runtime_program of = {
		.pid = PID, .generation = GENERATION, .index = supported, .is_library = true
	};
	struct fixture *f = *state;

	runtimes_forked(&f->runtimes, GENERATION, PID, GENERATION + 1);
	assert_int_equal(f->sets, 0);
	runtimes_program(&f->runtimes, &of);
	runtimes_bind(&f->runtimes, GENERATION, &of_sample);
	runtimes_forked(&f->runtimes, GENERATION, PID, GENERATION + 1);
	assert_int_equal(f->sets, 3);
	assert_int_equal(f->passed.generation, GENERATION + 1);
	assert_int_equal(f->passed.exec_id, EXEC_ID);
	runtimes_ended(&f->runtimes, GENERATION);
	runtimes_ended(&f->runtimes, GENERATION + 1);
	assert_int_equal(f->removes, 2);
}

static void frames_are_named_by_the_row_that_brings_their_kind(void **state)
{
	struct fixture *f = *state;
	struct index_frame line;

	for (uint32_t kind = FIRST_KIND - 1; kind <= LAST_KIND + 1; kind++) {
		const struct runtime_frame frame = {
			.pid = PID,
			.generation = GENERATION,
			.frame = { .kind = kind, .position = kind, .cookie = kind },
		};
		struct runtime_names names = { .lines = &line };
		bool ours = kind >= FIRST_KIND && kind <= LAST_KIND;

		runtimes_names(&f->runtimes, &frame, &names);
		assert_int_equal(names.line_count, 0);
		assert_int_equal(names.mapping != NULL, ours);
		runtimes_sampled(&f->runtimes, &frame);
		runtimes_names(&f->runtimes, &frame, &names);
		assert_int_equal(names.line_count, ours ? 1 : 0);
		if (ours)
			assert_int_equal(line.line, kind);
	}
}

/* ---- Go ------------------------------------------------------------------------------------- */

static struct index *index_of_go(const struct index_go *go)
{
	struct index_writer *w = index_writer_create();
	autoclose int fd = memfd_create("index", MFD_CLOEXEC);
	struct index *index = NULL;

	assert_non_null(w);
	go_write_facts(w, go);
	assert_int_equal(writer_finish(w, fd), 0);
	index_writer_destroy(w);
	assert_int_equal(index_open(fd, &index), 0);
	return index;
}

static void go_is_configured_from_its_index(void **state)
{
	struct fixture *f = *state;
	struct index *index = index_of_go(&(struct index_go){
		.version = 26,
		.supported = 1,
		.g_tls_offset = -128,
		.g_m = 48,
		.m_curg = 184,
		.g_goid = 152,
	});

	program(f, index, NULL);
	assert_int_equal(f->passed.kind, ABI_RUNTIME_GO);
	assert_int_equal(f->passed.go.g_goid, 152);
	index_destroy(index);
}

static void go_of_an_unknown_version_is_counted(void **state)
{
	struct fixture *f = *state;
	struct index *index = index_of_go(&(struct index_go){ .version = 99 });

	program(f, index, NULL);
	assert_int_equal(f->sets, 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_GO_UNKNOWN_VERSION), 1);
	index_destroy(index);
}

static void go_that_cannot_be_read_is_logged_once_for_a_file(void **state)
{
	static const char text[] = "contradicts what is known of its release";
	struct fixture *f = *state;
	struct index *index =
		index_of_go(&(struct index_go){ .version = 26, .refusal = INDEX_GO_CONTRADICTION });
	struct runtime_program of = { .pid = PID, .generation = GENERATION, .index = index };
	autoclose int log_fd = memfd_create("log", MFD_CLOEXEC);
	autoclose int stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	char log[4096] = "";

	assert_true(log_fd >= 0 && stderr_fd >= 0);
	fflush(stderr);
	assert_true(dup3(log_fd, STDERR_FILENO, O_CLOEXEC) >= 0);
	runtimes_program(&f->runtimes, &of);
	of.generation++;
	runtimes_program(&f->runtimes, &of);
	fflush(stderr);
	assert_true(dup3(stderr_fd, STDERR_FILENO, 0) >= 0);
	assert_true(pread(log_fd, log, sizeof(log) - 1, 0) > 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_GO_UNKNOWN_VERSION), 2);
	assert_non_null(strstr(log, text));
	assert_null(strstr(strstr(log, text) + 1, text));
	runtimes_ended(&f->runtimes, GENERATION + 1);
	index_destroy(index);
}

static void a_program_without_go_has_no_runtime(void **state)
{
	struct fixture *f = *state;
	struct index *index = index_of_go(&(struct index_go){ 0 });

	assert_false(runtimes_has(&f->runtimes, index));
	index_destroy(index);
}

static void fibers_are_called_what_their_runtime_calls_them(void **state)
{
	const struct runtime *const one[] = { &nothing, &with_coroutines, &test_runtime };
	const struct runtime *const two[] = { &with_coroutines, &nothing, &runtime_go };

	(void)state;
	assert_ptr_equal(runtimes_fibers(one, ARRAY_SIZE(one)), &coroutines);
	assert_string_equal(runtimes_fibers(two, ARRAY_SIZE(two))->one, "fiber");
	assert_string_equal(runtimes_fibers(two, ARRAY_SIZE(two))->many, "fibers");
	assert_string_equal(runtimes_fibers(rows, ARRAY_SIZE(rows))->one, "fiber");
	assert_string_equal(runtime_fibers()->many, "goroutines");
	assert_string_equal(runtime_fibers()->id, "GOID");
	assert_true(runtime_fibers_are_called("goroutine"));
	assert_false(runtime_fibers_are_called("coroutine"));
	assert_false(runtime_fibers_are_called("goroutines"));
}

#define RUNTIMES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define GO_TEST(name) cmocka_unit_test_setup_teardown(name, setup_with_the_programs_rows, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUNTIMES_TEST(a_program_without_a_runtime_is_left_alone),
		RUNTIMES_TEST(the_first_row_that_detects_configures),
		RUNTIMES_TEST(the_exec_id_is_passed_to_bpf_once_it_is_known),
		RUNTIMES_TEST(an_exec_id_of_0_is_valid),
		RUNTIMES_TEST(an_unsupported_program_is_counted_once_and_not_passed_on),
		RUNTIMES_TEST(an_end_removes_only_its_own_entry),
		RUNTIMES_TEST(a_refused_entry_is_repeated_at_a_retry),
		RUNTIMES_TEST(a_refused_exec_id_is_repeated_with_the_next_sample),
		RUNTIMES_TEST(where_a_library_is_decides_how_it_is_read),
		RUNTIMES_TEST(a_process_keeps_its_first_library),
		RUNTIMES_TEST(a_program_replaces_its_libraries),
		RUNTIMES_TEST(a_child_has_its_parents_library),
		RUNTIMES_TEST(frames_are_named_by_the_row_that_brings_their_kind),
		cmocka_unit_test(fibers_are_called_what_their_runtime_calls_them),
		GO_TEST(go_is_configured_from_its_index),
		GO_TEST(go_of_an_unknown_version_is_counted),
		GO_TEST(go_that_cannot_be_read_is_logged_once_for_a_file),
		GO_TEST(a_program_without_go_has_no_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
