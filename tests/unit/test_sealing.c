/* SPDX-License-Identifier: Apache-2.0 */
/* What a sealed window says about the processes of its samples, whatever happens to them later. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/sampler/samples/sifting.h"
#include "agent/sampler/sealing.h"
#include "tests/unit/report_fixture.h"

static void sample(struct fixture *f, const struct process *p)
{
	struct profile_frame frame = in_program(MAIN, 0, f);

	add_user(f, p, &frame, 1);
}

static void a_process_is_described_by_its_generation(void **state)
{
	struct fixture *f = *state;
	const struct process_facts *facts;

	f->one->executable = f->program;
	f->one->start_ticks = 4711;
	memset(f->one->container_id, 'c', CONTAINER_ID_BYTES - 1);
	sample(f, f->one);
	facts = window_processes_find(describe(f), f->one->number);
	assert_non_null(facts);
	assert_int_equal(facts->number, f->one->number);
	assert_int_equal(facts->pid, 100);
	assert_int_equal(facts->start_ticks, 4711);
	assert_string_equal(facts->comm, "one");
	assert_string_equal(facts->container_id, f->one->container_id);
	assert_string_equal(facts->program_path, "/bin/program");
	assert_int_equal(facts->program, f->program->number);
	assert_int_equal(facts->program_build_id.size, 4);
	assert_int_equal(facts->program_build_id.bytes[0], 1);
	assert_false(facts->kernel_thread);
	assert_false(facts->ended);
}

static const struct process_facts *described_since(struct fixture *f, uint64_t began_ns)
{
	window_processes_deinit(&f->described);
	window_processes_init(&f->described);
	f->described.began_ns = began_ns;
	sealing_describe(f->profile, f->processes, &f->metrics, &f->described);
	return window_processes_find(&f->described, f->one->number);
}

/* Its samples may be of both: neither container has them. */
static void a_window_in_which_a_process_moved_has_no_container_of_it(void **state)
{
	struct fixture *f = *state;
	const struct process_facts *facts;

	memset(f->one->container_id, 'c', CONTAINER_ID_BYTES - 1);
	memset(f->one->pod_uid, 'd', POD_UID_BYTES - 1);
	f->one->moved_ns = 100;
	sample(f, f->one);
	facts = described_since(f, 100);
	assert_string_equal(facts->container_id, "");
	assert_string_equal(facts->pod_uid, "");
	facts = described_since(f, 101);
	assert_string_equal(facts->container_id, f->one->container_id);
	assert_string_equal(facts->pod_uid, f->one->pod_uid);
}

/* Container ids of the two processes: what is told of them decides what of the window is passed on.
 */
static void containers_are_sifted(void **state)
{
	struct fixture *f = *state;
	struct choosing choosing;
	struct sifting sifting = {
		.choosing = &choosing, .processes = f->processes, .metrics = &f->metrics
	};
	struct container_choices *choices;

	memset(f->one->container_id, 'a', CONTAINER_CHOICE_ID);
	memset(f->two->container_id, 'b', CONTAINER_CHOICE_ID);
	sample(f, f->one);
	sample(f, f->two);
	choosing_init(&choosing);
	sifting_run(&sifting, f->profile, 1000);
	assert_int_equal(profile_total_count(f->profile), 2);
	assert_int_equal(container_choices_create(&choices), 0);
	choices->incomplete = true;
	assert_int_equal(container_choices_add(choices, f->one->container_id, "", 0), 0);
	(void)choosing_take(&choosing, choices);
	sifting_run(&sifting, f->profile, 1000);
	assert_int_equal(profile_total_count(f->profile), 1);
	assert_int_equal(profile_sample_at(f->profile, 0)->process, f->one->number);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SAMPLES_UNDECIDED), 1);
	assert_int_equal(
		container_choices_add(choices, f->one->container_id, "", CONTAINER_DECLINED), 0);
	sifting_run(&sifting, f->profile, 1000);
	assert_int_equal(profile_sample_count(f->profile), 0);
	assert_int_equal(metrics_get(&f->metrics, METRIC_SAMPLES_UNDECIDED), 2);
	choosing_deinit(&choosing);
}

static void a_program_that_is_not_known(void **state)
{
	struct fixture *f = *state;
	const struct process_facts *facts;

	f->two->executable = NULL;
	f->two->kernel_thread = true;
	sample(f, f->two);
	facts = window_processes_find(describe(f), f->two->number);
	assert_non_null(facts);
	assert_string_equal(facts->program_path, "");
	assert_int_equal(facts->program, 0);
	assert_int_equal(facts->program_build_id.size, 0);
	assert_true(facts->kernel_thread);
}

static void processes_without_samples_are_not_described(void **state)
{
	struct fixture *f = *state;
	struct process gone = { .number = 4711 };

	sample(f, f->one);
	sample(f, &gone);
	describe(f);
	assert_int_equal(f->described.by_number.count, 1);
	assert_null(window_processes_find(&f->described, f->two->number));
	assert_null(window_processes_find(&f->described, gone.number));
	assert_int_equal(metrics_get(&f->metrics, METRIC_SAMPLES_NOT_DESCRIBED), 0);
}

/* The window is read late: its processes have ended and are no longer in the table. */
static void later_events_do_not_change_the_description(void **state)
{
	struct fixture *f = *state;
	const struct process_facts *facts;
	uint32_t number = f->one->number;

	f->one->executable = f->program;
	sample(f, f->one);
	facts = window_processes_find(describe(f), number);
	processes_comm(f->processes, 20, 100, 100, "renamed", false);
	processes_exit(f->processes, 21, 100, 100);
	processes_sweep(f->processes, UINT64_MAX);
	assert_null(processes_find(f->processes, number));
	assert_ptr_equal(window_processes_find(&f->described, number), facts);
	assert_string_equal(facts->comm, "one");
	assert_string_equal(facts->program_path, "/bin/program");
	assert_false(facts->ended);
}

static void a_process_that_ended_before(void **state)
{
	struct fixture *f = *state;

	sample(f, f->one);
	processes_exit(f->processes, 21, 100, 100);
	assert_true(window_processes_find(describe(f), f->one->number)->ended);
}

static void many_processes_are_all_described(void **state)
{
	struct window_processes w;
	char path[32], expected[32];

	(void)state;
	window_processes_init(&w);
	for (uint32_t i = 1; i <= 3000; i++) {
		struct process_facts facts = { .number = i, .pid = 2 * i, .program_path = path };

		snprintf(path, sizeof(path), "/bin/%u", i);
		assert_int_equal(window_processes_add(&w, &facts), 0);
	}
	for (uint32_t i = 1; i <= 3000; i++) {
		const struct process_facts *facts = window_processes_find(&w, i);

		snprintf(expected, sizeof(expected), "/bin/%u", i);
		assert_int_equal(facts->pid, 2 * i);
		assert_string_equal(facts->program_path, expected);
	}
	window_processes_deinit(&w);
	assert_null(window_processes_find(&w, 1));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_process_is_described_by_its_generation),
		CASE(a_window_in_which_a_process_moved_has_no_container_of_it),
		CASE(containers_are_sifted),
		CASE(a_program_that_is_not_known),
		CASE(processes_without_samples_are_not_described),
		CASE(later_events_do_not_change_the_description),
		CASE(a_process_that_ended_before),
		cmocka_unit_test(many_processes_are_all_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
