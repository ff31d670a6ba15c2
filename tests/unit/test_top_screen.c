/* SPDX-License-Identifier: Apache-2.0 */
/* agent/top: a window as rows, rows as a screen; output to a reader that does not read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/seam/runtime_functions.h"
#include "agent/top/output.h"
#include "agent/top/screen.h"
#include "base/cleanup.h"
#include "tests/unit/report_fixture.h"

enum { MUCH_BYTES = 1 << 19 }; /* more than a pipe takes */

static const uint64_t SECOND_NS = 1000000000;

static void add_frames(struct fixture *f, const struct process *p,
	const struct profile_stack *stack, uint64_t fiber_id, uint64_t weight)
{
	struct profile_sample sample = { .process = p->number,
		.pid = p->pid,
		.tid = p->pid,
		.fiber_id = fiber_id,
		.count = 1,
		.weight = weight,
		.comm = "thread" };

	assert_int_equal(profile_stack(f->profile, stack, &sample.stack), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

/* Adds a sample at ADDRESS, called by main. */
static void add(struct fixture *f, const struct process *p, uint64_t address, uint64_t fiber_id,
	uint64_t weight)
{
	struct profile_frame frames[] = { in_program(address, 0, f),
		in_program(MAIN + 0x10, PROFILE_FRAME_RETURN, f) };

	add_frames(f, p, &(struct profile_stack){ frames, 2, 0, 0 }, fiber_id, weight);
}

static void add_alone(struct fixture *f, const struct process *p, uint64_t address,
	uint64_t fiber_id, uint64_t weight)
{
	struct profile_frame frame = in_program(address, 0, f);

	add_frames(f, p, &(struct profile_stack){ &frame, 1, 0, 0 }, fiber_id, weight);
}

static struct snapshot *snapshot_of(struct fixture *f)
{
	struct snapshot *s;

	assert_int_equal(snapshot_create(sealed_sources(f), &s), 0);
	return s;
}

static const struct row *row_named(const struct rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->count; i++) {
		if (!strcmp(rows->rows[i].name, name))
			return &rows->rows[i];
	}
	fail_msg("no row %s", name);
	return NULL;
}

/* ---- snapshot ---- */

static void test_samples_by_process(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;
	const struct row *row;

	add(f, f->one, START + 5, 0, 300);
	add(f, f->one, LIBC_START + 5, 0, 100);
	add(f, f->two, LIBC_START + 5, 0, 50);
	s = snapshot_of(f);
	assert_int_equal(s->by[ROWS_PROCESS].count, 2);
	row = row_named(&s->by[ROWS_PROCESS], "one");
	assert_int_equal(row->self_ns, 400);
	assert_int_equal(row->pid, f->one->pid);
	assert_string_equal(row->detail, "_start");
	assert_int_equal(row_named(&s->by[ROWS_PROCESS], "two")->self_ns, 50);
	assert_int_equal(s->weight_ns, 450);
	assert_int_equal(s->summary.of[SAMPLE_TYPE_TICKS].count, 3);
	snapshot_destroy(s);
}

static void test_functions_have_self_and_total(void **state)
{
	struct fixture *f = *state;
	const struct row *row;
	struct snapshot *s;

	add(f, f->one, START + 5, 0, 300);
	/* main calls itself, but counts once per stack. */
	add(f, f->two, MAIN + 0x20, 0, 100);
	s = snapshot_of(f);
	row = row_named(&s->by[ROWS_FUNCTION], "main");
	assert_int_equal(row->self_ns, 100);
	assert_int_equal(row->total_ns, 400);
	assert_string_equal(row->detail, "program");
	assert_int_equal(row_named(&s->by[ROWS_FUNCTION], "_start")->self_ns, 300);
	snapshot_destroy(s);
}

static void test_goroutines_are_called_by_their_own_function(void **state)
{
	struct fixture *f = *state;
	struct snapshot *s;

	add(f, f->one, MCALL + 5, 7, 10);
	add(f, f->one, START + 5, 0, 10);
	add(f, f->two, LIBC_START + 5, 7, 30);
	/* The runtime alone has the most samples. */
	add_alone(f, f->two, MCALL + 5, 7, 90);
	add_alone(f, f->two, MCALL + 5, 8, 90);
	s = snapshot_of(f);
	assert_int_equal(s->by[ROWS_FIBER].count, 3);
	rows_order(&s->by[ROWS_FIBER], ROWS_CPU, false);
	assert_string_equal(s->by[ROWS_FIBER].rows[0].detail, "__libc_start_main");
	assert_string_equal(s->by[ROWS_FIBER].rows[1].detail, "runtime.mcall");
	/* A process shows its hottest function, even one of the runtime. */
	assert_string_equal(row_named(&s->by[ROWS_PROCESS], "two")->detail, "runtime.mcall");
	assert_int_equal(row_named(&s->by[ROWS_FIBER], "one")->fiber_id, 7);
	snapshot_destroy(s);
}

static void test_functions_of_the_runtime_are_recognized(void **state)
{
	(void)state;
	assert_true(runtime_function_is_own("runtime.mallocgc"));
	assert_true(runtime_function_is_own("runtime/internal/atomic.Load"));
	assert_true(runtime_function_is_own("internal/runtime/maps.(*Map).Get"));
	assert_true(runtime_function_is_own("memeqbody.abi0"));
	assert_true(runtime_function_is_own("gogo"));
	assert_false(runtime_function_is_own("main.runtime"));
	assert_false(runtime_function_is_own("gogo_client"));
	assert_false(runtime_function_is_own("runtimex.f"));
	assert_true(runtime_function_ends_fiber("runtime.goexit1"));
	assert_false(runtime_function_ends_fiber("runtime.goexit"));
}

static void test_no_samples(void **state)
{
	struct snapshot *s = snapshot_of(*state);

	for (size_t by = 0; by < ROWS_KINDS; by++)
		assert_int_equal(s->by[by].count, 0);
	snapshot_destroy(s);
}

/* ---- rows ---- */

static void test_rows_order(void **state)
{
	struct row list[] = { { .pid = 3, .self_ns = 1, .total_ns = 9, .name = "b", .detail = "" },
		{ .pid = 1, .self_ns = 5, .total_ns = 5, .name = "c", .detail = "" },
		{ .pid = 2, .self_ns = 5, .total_ns = 6, .name = "a", .detail = "" } };
	struct rows rows = { .rows = list, .count = ARRAY_SIZE(list) };

	(void)state;
	rows_order(&rows, ROWS_CPU, false);
	assert_int_equal(list[0].pid, 2); /* of equal rows, the larger total first */
	assert_int_equal(list[2].pid, 3);
	rows_order(&rows, ROWS_TOTAL, false);
	assert_int_equal(list[0].pid, 3);
	rows_order(&rows, ROWS_PID, true);
	assert_int_equal(list[0].pid, 3);
	rows_order(&rows, ROWS_NAME, false);
	assert_int_equal(list[0].pid, 2);
}

static void test_rows_filter(void **state)
{
	const struct row row = {
		.pid = 42, .fiber_id = 7, .name = "Server", .detail = "main.work"
	};

	(void)state;
	assert_true(row_matches(&row, ""));
	assert_true(row_matches(&row, "serv"));
	assert_true(row_matches(&row, "WORK"));
	assert_true(row_matches(&row, "42"));
	assert_true(row_matches(&row, "7"));
	assert_false(row_matches(&row, "4"));
	assert_false(row_matches(&row, "0"));
	assert_false(row_matches(&row, "x"));
}

/* ---- screen ---- */

static char *drawn(
	struct fixture *f, struct view *v, struct snapshot *s, size_t columns, size_t lines)
{
	const struct screen_facts facts = { .interval_ns = SECOND_NS,
		.frequency_hz = 99,
		.own_ns = SECOND_NS / 50,
		.cpus = 2,
		.metrics = &f->metrics };
	const struct screen_form form = { columns, lines, false };
	struct buffer out;

	buffer_init(&out, 1 << 20);
	assert_int_equal(screen_draw(&out, v, s, &facts, &form), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	return (char *)out.bytes;
}

static void test_screen_lines(void **state)
{
	struct fixture *f = *state;
	struct view v = { 0 };
	struct snapshot *s;
	autofree char *text = NULL;

	add(f, f->one, START + 5, 0, SECOND_NS / 2);
	metrics_add(&f->metrics, METRIC_LOST_RING_FULL, 3);
	s = snapshot_of(f);
	text = drawn(f, &v, s, 0, 0);
	assert_non_null(strstr(text, "last 1.0 s: 0.50 of 2 CPUs, 1 samples/s (99 Hz)\n"));
	assert_non_null(strstr(text, "lost: 3 (ring_full 3); complete stacks: "));
	assert_non_null(strstr(text, "; own CPU: 2.0%\n"));
	assert_non_null(strstr(text, "  50.0     0.0  one              _start\n"));
	snapshot_destroy(s);
}

static size_t count_lines(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == '\n' && text[1] != '\n' && text[1];
	return count + 1;
}

static void fits_size(
	struct fixture *f, struct snapshot *s, enum rows_by by, size_t columns, size_t lines)
{
	struct view v = { .by = by, .first = 1000 };
	autofree char *text = drawn(f, &v, s, columns, lines);
	size_t column = 0;

	assert_true(count_lines(text) <= lines);
	for (const char *at = text; *at; at++) {
		column = *at == '\n' ? 0 : column + 1;
		assert_true(column <= columns);
	}
	assert_true(v.first < s->by[by].count);
}

static void test_screen_fits_any_size(void **state)
{
	static const size_t heights[] = { 1, 2, 3, 4, 5, 6, 9, 24, 89, 100 };
	struct fixture *f = *state;
	struct snapshot *s;

	add(f, f->one, START + 5, 3, SECOND_NS / 2);
	add(f, f->two, MAIN + 5, 4, SECOND_NS / 2);
	s = snapshot_of(f);
	for (int by = 0; by < ROWS_KINDS; by++) {
		for (size_t columns = 1; columns <= 300; columns++) {
			for (size_t i = 0; i < ARRAY_SIZE(heights); i++)
				fits_size(f, s, (enum rows_by)by, columns, heights[i]);
		}
	}
	snapshot_destroy(s);
}

static void test_screen_before_the_first_interval(void **state)
{
	struct view v = { .by = ROWS_FUNCTION };
	autofree char *text = drawn(*state, &v, NULL, 80, 24);

	assert_non_null(strstr(text, "waiting for the first interval\n"));
}

/* ---- output ---- */

struct reader {
	int ends[2];
	struct loop *loop;
	unsigned int drained;
	int error;
	size_t received; /* bytes, each as fill() made it */
};

static void on_drained(void *context)
{
	struct reader *r = context;

	r->drained++;
	loop_stop(r->loop);
}

static void on_failed(void *context, int error)
{
	struct reader *r = context;

	r->error = error;
	loop_stop(r->loop);
}

/* Differs from its neighbours, and from the bytes a power of two further. */
static uint8_t byte_at(size_t position)
{
	return (uint8_t)(position % 251);
}

static void read_all(void *context)
{
	struct reader *r = context;
	uint8_t bytes[65536];
	ssize_t got = read(r->ends[0], bytes, sizeof(bytes));

	/* The pipe is empty until the loop has written again. */
	assert_true(got > 0 || errno == EAGAIN);
	for (ssize_t i = 0; i < got; i++, r->received++)
		assert_int_equal(bytes[i], byte_at(r->received));
}

static struct output *output_to_pipe(struct reader *r)
{
	struct output *output;

	assert_int_equal(pipe2(r->ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(r->ends[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(loop_create(&r->loop), 0);
	assert_int_equal(output_create(
				 &(struct output_options){
					 .fd = r->ends[1],
					 .loop = r->loop,
					 .drained = on_drained,
					 .failed = on_failed,
					 .context = r,
				 },
				 &output),
		0);
	return output;
}

static void fill(struct buffer *bytes)
{
	buffer_init(bytes, 1 << 20);
	assert_non_null(buffer_room(bytes, MUCH_BYTES));
	for (size_t i = 0; i < MUCH_BYTES; i++)
		bytes->bytes[i] = byte_at(i);
	bytes->size = MUCH_BYTES;
}

static void test_output_never_waits(void **state)
{
	struct reader r = { 0 };
	struct output *output = output_to_pipe(&r);
	autocall(buffer_deinit) struct buffer bytes;
	int timer;

	(void)state;
	fill(&bytes);
	assert_int_equal(output_put(output, &bytes), 0);
	assert_true(output_is_pending(output));
	assert_int_equal(output_put(output, &bytes), -EBUSY);
	/* The open file of the pipe has not changed: other users of it may block. */
	assert_false(fcntl(r.ends[1], F_GETFL) & O_NONBLOCK);
	assert_int_equal(loop_timer(r.loop, 1000, 1000, read_all, &r, &timer), 0);
	assert_int_equal(loop_run(r.loop), 0);
	assert_int_equal(r.drained, 1);
	assert_false(output_is_pending(output));
	for (size_t before = 0; before < r.received;) {
		before = r.received;
		read_all(&r);
	}
	assert_int_equal(r.received, MUCH_BYTES);
	output_destroy(output);
	loop_destroy(r.loop);
	close(r.ends[0]);
	close(r.ends[1]);
}

static void test_a_closed_reader_is_reported(void **state)
{
	struct reader r = { 0 };
	struct output *output = output_to_pipe(&r);
	autocall(buffer_deinit) struct buffer bytes;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	fill(&bytes);
	assert_int_equal(output_put(output, &bytes), 0);
	close(r.ends[0]);
	assert_int_equal(loop_run(r.loop), 0);
	assert_int_equal(r.error, -EPIPE);
	assert_false(output_is_pending(output));
	assert_int_equal(output_put(output, &bytes), -EPIPE);
	output_destroy(output);
	loop_destroy(r.loop);
	close(r.ends[1]);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_samples_by_process),
		CASE(test_functions_have_self_and_total),
		CASE(test_goroutines_are_called_by_their_own_function),
		cmocka_unit_test(test_functions_of_the_runtime_are_recognized),
		CASE(test_no_samples),
		cmocka_unit_test(test_rows_order),
		cmocka_unit_test(test_rows_filter),
		CASE(test_screen_lines),
		CASE(test_screen_fits_any_size),
		CASE(test_screen_before_the_first_interval),
		cmocka_unit_test(test_output_never_waits),
		cmocka_unit_test(test_a_closed_reader_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
