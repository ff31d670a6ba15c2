/* SPDX-License-Identifier: Apache-2.0 */
/* A window is sealed while each allocation fails in turn: no sample is lost, some have no process.
 */
#include "tests/unit/torture.h"

#include <stdio.h>
#include <string.h>

#include "agent/sampler/sealing.h"
#include "base/cleanup.h"
#include "tests/unit/report_fixture.h"

enum { PROCESSES = 40, LONG_PATH = 4000 };

struct sealing {
	struct fixture *f;
	uint64_t refused; /* samples without a description before this try */
	struct report_summary summary;
};

static void begin_sealing(void *context)
{
	struct sealing *s = context;

	s->refused = metrics_get(&s->f->metrics, METRIC_SAMPLES_NOT_DESCRIBED);
	window_processes_init(&s->f->described);
}

static int seal(void *context)
{
	struct sealing *s = context;

	sealing_describe(s->f->profile, s->f->processes, &s->f->metrics, &s->f->described);
	return 0;
}

/* The report has the whole profile; samples without a description are counted. */
static void all_samples_are_reported(void *context, int result)
{
	struct sealing *s = context;
	struct fixture *f = s->f;
	autocall(buffer_deinit) struct buffer out;
	uint64_t refused = 0;

	(void)result;
	for (size_t i = 0; i < profile_sample_count(f->profile); i++) {
		const struct profile_sample *sample = profile_sample_at(f->profile, i);
		const struct process_facts *facts =
			window_processes_find(&f->described, sample->process);

		refused += facts ? 0 : sample->count;
		if (facts)
			assert_int_equal(strlen(facts->program_path), LONG_PATH);
	}
	assert_int_equal(
		metrics_get(&f->metrics, METRIC_SAMPLES_NOT_DESCRIBED) - s->refused, refused);
	assert_true((refused == 0) == (torture_failed() == NULL));
	buffer_init(&out, 1 << 20);
	assert_int_equal(
		report_folded(&f->sources, &f->options, SAMPLE_TYPE_TICKS, &out, &s->summary), 0);
	assert_int_equal(s->summary.of[SAMPLE_TYPE_TICKS].count, PROCESSES);
	unseal(f);
}

static struct process *make_process(struct fixture *f, uint32_t pid)
{
	processes_fork(f->processes, 20, pid, pid, 1, 1);
	processes_comm(f->processes, 21, pid, pid, "many", true);
	return processes_get(f->processes, &(struct processes_sample){ .pid = pid, .time_ns = 22 });
}

static void a_window_is_sealed_without_memory(void **state)
{
	struct fixture *f = *state;
	struct module_id id = { .build_id = { .size = 4, .bytes = { 77 } } };
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct sealing s = { .f = f };
	struct torture t = { .begin = begin_sealing,
		.operation = seal,
		.end = all_samples_are_reported,
		.context = &s,
		.optional = "malloc calloc realloc" };
	char path[LONG_PATH + 1];
	struct module *program;

	memset(path, 'x', LONG_PATH);
	path[LONG_PATH] = 0;
	assert_int_equal(modules_get(f->modules, MODULE_FILE, &id, path, &program), 0);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct process *p = make_process(f, 1000 + i);

		assert_non_null(p);
		p->executable = program;
		add_user(f, p, &frame, 1);
	}
	torture_run(&t);
}

static int teardown(void **state)
{
	torture_teardown(state);
	return report_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_window_is_sealed_without_memory, report_setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
