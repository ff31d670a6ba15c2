/* SPDX-License-Identifier: Apache-2.0 */
/* agent/top while each allocation and system call fails in turn. */
#include "tests/unit/torture.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/top/output.h"
#include "agent/top/screen.h"
#include "agent/top/snapshot.h"
#include "base/cleanup.h"
#include "tests/unit/report_fixture.h"

/* ---- snapshots ------------------------------------------------------------------------------- */

static struct snapshot *taken;

static void add(struct fixture *f, const struct process *p, uint64_t file_off, uint64_t fiber_id)
{
	struct profile_frame frames[] = { in_program(file_off, 0, f),
		in_program(MAIN + 0x10, PROFILE_FRAME_RETURN, f) };
	struct profile_sample sample = { .process = p->number,
		.pid = p->pid,
		.tid = p->pid,
		.fiber_id = fiber_id,
		.count = 1,
		.weight = 10,
		.comm = "thread" };

	assert_int_equal(profile_stack(f->profile, &(struct profile_stack){ frames, 2, 0, 0 },
				 &sample.stack),
		0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

static const struct report_sources *sources;

static void seal(void *context)
{
	sources = known_sources(context);
}

static int take_snapshot(void *context)
{
	(void)context;
	return snapshot_create(sources, &taken);
}

/* The snapshot is complete, or there is none. */
static void it_is_whole_or_none(void *context, int result)
{
	assert_int_equal(result == 0, taken != NULL);
	if (taken) {
		assert_int_equal(taken->by[ROWS_PROCESS].count, 2);
		assert_int_equal(taken->by[ROWS_FIBER].count, 2);
		assert_int_equal(taken->weight_ns, 40);
	}
	snapshot_destroy(taken);
	taken = NULL;
	unseal(context);
}

static void a_snapshot_without_memory(void **state)
{
	struct fixture *f = *state;
	struct torture t = {
		.begin = seal, .operation = take_snapshot, .end = it_is_whole_or_none, .context = f
	};

	add(f, f->one, START + 5, 0);
	add(f, f->one, LIBC_START + 5, 7);
	add(f, f->two, MCALL + 5, 8);
	add(f, f->two, MAIN + 5, 0);
	torture_run(&t);
}

/* ---- drawing --------------------------------------------------------------------------------- */

struct drawing {
	struct fixture *f;
	struct snapshot *snapshot;
	struct view view;
	struct buffer out;
};

static int draw(void *context)
{
	struct drawing *d = context;
	const struct screen_facts facts = {
		.interval_ns = 1000, .frequency_hz = 99, .cpus = 2, .metrics = &d->f->metrics
	};

	return screen_draw(
		&d->out, &d->view, d->snapshot, &facts, &(struct screen_form){ 80, 24, true });
}

static void begin_drawing(void *context)
{
	struct drawing *d = context;

	buffer_init(&d->out, 1 << 20);
}

static void end_drawing(void *context, int result)
{
	struct drawing *d = context;

	(void)result;
	buffer_deinit(&d->out);
}

static void a_screen_without_memory(void **state)
{
	struct drawing d = { .f = *state };
	/* The line with the losses has its own buffer; without it the line is empty. */
	struct torture t = { .begin = begin_drawing,
		.operation = draw,
		.end = end_drawing,
		.context = &d,
		.optional = "*" };

	add(d.f, d.f->one, START + 5, 0);
	assert_int_equal(snapshot_create(sealed_sources(d.f), &d.snapshot), 0);
	torture_run(&t);
	snapshot_destroy(d.snapshot);
}

/* ---- output ---------------------------------------------------------------------------------- */

struct writing {
	struct loop *loop;
	struct output *output;
	struct buffer bytes;
	int ends[2];
};

static void on_drained(void *context)
{
	(void)context;
}

static void on_failed(void *context, int error)
{
	(void)context;
	(void)error;
}

static void begin_writing(void *context)
{
	struct writing *w = context;

	assert_int_equal(pipe2(w->ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(loop_create(&w->loop), 0);
	buffer_init(&w->bytes, 1 << 20);
	assert_non_null(buffer_room(&w->bytes, 1 << 19));
	memset(w->bytes.bytes, 'x', 1 << 19);
	w->bytes.size = 1 << 19;
	w->output = NULL;
}

/* Writes more than the pipe takes: the rest is kept. */
static int write_much(void *context)
{
	struct writing *w = context;
	int err = output_create(
		&(struct output_options){
			.fd = w->ends[1],
			.loop = w->loop,
			.drained = on_drained,
			.failed = on_failed,
			.context = w,
		},
		&w->output);

	return err ? err : output_put(w->output, &w->bytes);
}

/* After a failure nothing is pending. */
static void nothing_is_half_kept(void *context, int result)
{
	struct writing *w = context;

	if (w->output)
		assert_int_equal(output_is_pending(w->output), result == 0);
	output_destroy(w->output);
	loop_destroy(w->loop);
	buffer_deinit(&w->bytes);
	close(w->ends[0]);
	close(w->ends[1]);
}

static void output_without_memory(void **state)
{
	struct writing w = { 0 };
	struct torture t = { .begin = begin_writing,
		.operation = write_much,
		.end = nothing_is_half_kept,
		.context = &w,
		/* Without a descriptor of its own, the output uses the given one. */
		.optional = "fstat open" };

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_snapshot_without_memory, report_setup, report_teardown),
		cmocka_unit_test_setup_teardown(
			a_screen_without_memory, report_setup, report_teardown),
		torture_test(output_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
