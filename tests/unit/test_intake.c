/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples are accepted, and to which process generation they belong. */
#include "agent/sampler/samples/intake.h"

#include "agent/sampler/process/selection.h"
#include "tests/unit/raw_stack.h"
#include "tests/unit/walks_fixture.h"

enum { RAW = 77, OTHER_PID = 300, NEW_PID = 400 };

/* A process of walks_fixture.h (WALK_PID) that intake samples. */
struct intake_fixture {
	struct walks_fixture *w;
	struct intake intake;
	struct profile *profile; /* of the raw stacks */
	/* The results. */
	uint64_t sampled_ns;
	unsigned int taken;
	struct process *last_taken;
	unsigned int left_out, let_in, unwanted; /* calls */
	uint32_t last_left_out, last_let_in; /* tgid */
};

static const struct abi_stack *raw_stack(void *context, uint32_t window, uint64_t id)
{
	const struct intake_fixture *f = context;

	return profile_get_raw(f->profile, window, id);
}

static void leave_out(void *context, uint32_t tgid, bool out)
{
	struct intake_fixture *f = context;

	if (out) {
		f->left_out++;
		f->last_left_out = tgid;
	} else {
		f->let_in++;
		f->last_let_in = tgid;
	}
}

static void sampled_at(void *context, uint32_t window, uint64_t time_ns)
{
	(void)window;
	struct intake_fixture *f = context;

	f->sampled_ns = time_ns;
}

static void taken(void *context, struct process *p, const struct abi_sample *sample)
{
	struct intake_fixture *f = context;

	/* The owner is told about a sample before it is delivered. */
	assert_int_equal(f->w->added_count, f->taken);
	assert_int_equal(sample->tgid, p->pid);
	f->taken++;
	f->last_taken = p;
}

static void unwanted(void *context, const struct process *p, const struct abi_sample *sample)
{
	struct intake_fixture *f = context;

	assert_int_equal(p->pid, sample->tgid);
	f->unwanted++;
}

static void add(void *context, const struct attributed_sample *sample)
{
	struct intake_fixture *f = context;

	f->w->walks.options.add(f->w, sample);
}

static void begin_intake(struct intake_fixture *f, uint32_t follow_pid)
{
	assert_int_equal(intake_init(&f->intake,
				 &(struct intake_options){
					 .processes = f->w->f->ps,
					 .unwind = f->w->unwind,
					 .walks = &f->w->walks,
					 .metrics = &f->w->f->metrics,
					 .follow_pid = follow_pid,
					 .raw_stack = raw_stack,
					 .leave_out = leave_out,
					 .unwanted = unwanted,
					 .sampled = sampled_at,
					 .taken = taken,
					 .add = add,
					 .context = f,
				 }),
		0);
}

static int setup(void **state)
{
	struct intake_fixture *f = calloc(1, sizeof(*f));
	void *walks = NULL;

	if (!f || walks_set_up(&walks))
		return -1;
	f->w = walks;
	assert_int_equal(profile_create(1 << 20, &f->profile), 0);
	put_raw(f->profile, WALK_WINDOW, RAW, 0, WALK_PROGRAM_PC);
	begin_intake(f, 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct intake_fixture *f = *state;
	void *walks = f->w;

	intake_deinit(&f->intake);
	profile_destroy(f->profile);
	walks_tear_down(&walks);
	free(f);
	return 0;
}

static int setup_following(void **state)
{
	struct intake_fixture *f;

	if (setup(state))
		return -1;
	f = *state;
	intake_deinit(&f->intake);
	begin_intake(f, WALK_PID);
	return 0;
}

#define INTAKE_CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define FOLLOWING_CASE(name) cmocka_unit_test_setup_teardown(name, setup_following, teardown)

static uint64_t counted(const struct intake_fixture *f, enum metric metric)
{
	return metrics_get(&f->w->f->metrics, metric);
}

/* A tick of TGID, of the program that the table knows there, in its program's code. */
static struct abi_tick tick_of(const struct intake_fixture *f, uint32_t tgid)
{
	const struct process *p = live(f->w->f, tgid);

	return (struct abi_tick){
		.sample = {
			.kind = ABI_TICK,
			.user_stack = RAW,
			.tgid = tgid,
			.tid = tgid,
			.window = WALK_WINDOW,
			.exec_id = p ? p->exec_id : 0,
		},
		.period = 1000,
	};
}

static void sample(struct intake_fixture *f, uint64_t time_ns, uint32_t tgid)
{
	const struct abi_tick tick = tick_of(f, tgid);

	intake_sample(&f->intake, time_ns, &tick.sample);
}

static const struct added_sample *last_added(const struct intake_fixture *f)
{
	assert_true(f->w->added_count > 0);
	return &f->w->added[f->w->added_count - 1];
}

/* ---- the process of a sample ---------------------------------------------------------------- */

static void a_sample_is_delivered_with_its_process(void **state)
{
	struct intake_fixture *f = *state;
	const struct abi_tick tick = tick_of(f, WALK_PID);

	assert_int_equal(intake_first_sample_ns(&f->intake), 0);
	intake_sample(&f->intake, 3000, &tick.sample);
	intake_sample(&f->intake, 4000, &tick.sample);
	assert_int_equal(f->taken, 2);
	assert_int_equal(f->w->added_count, 2);
	assert_ptr_equal(f->last_taken, f->w->process);
	assert_ptr_equal(last_added(f)->process, f->w->process);
	assert_memory_equal(&last_added(f)->record, &tick, sizeof(tick));
	assert_false(last_added(f)->walked);
	assert_int_equal(intake_first_sample_ns(&f->intake), 3000);
	assert_int_equal(intake_newest_sample_ns(&f->intake), 4000);
	assert_int_equal(f->sampled_ns, 4000);
	assert_int_equal(f->left_out, 0);
	assert_int_equal(f->last_let_in, WALK_PID);
	assert_int_equal(counted(f, METRIC_LOST_MEMORY_LIMIT), 0);
}

static void another_exec_id_is_another_program(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_tick tick = tick_of(f, WALK_PID);

	intake_sample(&f->intake, 3000, &tick.sample);
	tick.sample.exec_id++;
	intake_sample(&f->intake, 4000, &tick.sample);
	assert_ptr_not_equal(last_added(f)->process, f->w->process);
	assert_int_equal(last_added(f)->process->pid, WALK_PID);
}

static void a_sample_in_the_middle_of_an_exec_keeps_its_process(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_tick tick = tick_of(f, WALK_PID);

	intake_sample(&f->intake, 3000, &tick.sample);
	tick.sample.exec_id++;
	tick.sample.flags = ABI_SAMPLE_EXECUTING;
	intake_sample(&f->intake, 4000, &tick.sample);
	assert_ptr_equal(last_added(f)->process, f->w->process);
	assert_int_equal(counted(f, METRIC_UNNAMED_EXECUTING), 1);
}

static void a_kernel_thread_has_no_program(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_tick tick = tick_of(f, NEW_PID);

	tick.sample.flags = ABI_SAMPLE_KTHREAD;
	intake_sample(&f->intake, 3000, &tick.sample);
	assert_true(last_added(f)->process->kernel_thread);
}

static void a_process_over_the_limit_of_the_table_is_counted_as_lost(void **state)
{
	struct intake_fixture *f = *state;

	for (uint32_t i = 0; i < LIMIT; i++)
		intake_fork(&f->intake, 2500, NEW_PID + i, NEW_PID + i, WALK_PID, WALK_PID);
	sample(f, 3000, NEW_PID + 2 * LIMIT);
	assert_int_equal(f->taken, 0);
	assert_int_equal(f->w->added_count, 0);
	assert_int_equal(counted(f, METRIC_LOST_MEMORY_LIMIT), 1);
}

/* ---- which samples are wanted --------------------------------------------------------------- */

static void only_the_followed_process_and_its_children_are_taken(void **state)
{
	struct intake_fixture *f = *state;

	exec(f->w->f, 1000, OTHER_PID, &f->w->f->other);
	sample(f, 3000, OTHER_PID);
	assert_int_equal(f->taken, 0);
	assert_int_equal(f->last_left_out, OTHER_PID);
	assert_int_equal(intake_first_sample_ns(&f->intake), 0);
	sample(f, 3100, WALK_PID);
	assert_int_equal(f->taken, 1);
	assert_int_equal(f->last_let_in, WALK_PID);
	intake_fork(&f->intake, 3200, NEW_PID, NEW_PID, WALK_PID, WALK_PID);
	assert_int_equal(f->last_let_in, NEW_PID);
	sample(f, 3300, NEW_PID);
	assert_int_equal(f->taken, 2);
	assert_int_equal(last_added(f)->process->pid, NEW_PID);
}

static void a_reused_pid_is_not_followed(void **state)
{
	struct intake_fixture *f = *state;

	exec(f->w->f, 1000, OTHER_PID, &f->w->f->other);
	intake_fork(&f->intake, 3000, NEW_PID, NEW_PID, WALK_PID, WALK_PID);
	intake_exit(&f->intake, 3100, NEW_PID, NEW_PID);
	intake_fork(&f->intake, 3200, NEW_PID, NEW_PID, OTHER_PID, OTHER_PID);
	assert_int_equal(f->last_left_out, NEW_PID);
	sample(f, 3300, NEW_PID);
	assert_int_equal(f->taken, 0);
}

static void a_new_thread_changes_nothing(void **state)
{
	struct intake_fixture *f = *state;
	unsigned int calls = f->left_out + f->let_in;

	intake_fork(&f->intake, 3000, WALK_PID, NEW_PID, WALK_PID, WALK_PID);
	assert_int_equal(f->left_out + f->let_in, calls);
	sample(f, 3100, WALK_PID);
	assert_int_equal(f->taken, 1);
}

static void a_renamed_process_stays_followed_or_left_out(void **state)
{
	struct intake_fixture *f = *state;

	intake_comm(&f->intake, 3000, WALK_PID, WALK_PID, "renamed", false);
	assert_int_equal(f->last_let_in, WALK_PID);
	assert_string_equal(f->w->process->comm, "renamed");
	intake_comm(&f->intake, 3000, OTHER_PID, OTHER_PID, "renamed", false);
	assert_int_equal(f->last_left_out, OTHER_PID);
}

static void the_selection_leaves_processes_out_until_it_changes(void **state)
{
	struct intake_fixture *f = *state;
	struct selection *selection;
	bool second;

	assert_int_equal(selection_create(NULL, "comm=program", &selection, &second), 0);
	intake_select(&f->intake, selection);
	sample(f, 3000, WALK_PID);
	assert_int_equal(f->taken, 0);
	assert_int_equal(f->last_left_out, WALK_PID);
	assert_int_equal(counted(f, METRIC_SAMPLES_NOT_SELECTED), 1);
	assert_int_equal(f->unwanted, 1);
	assert_int_equal(intake_newest_sample_ns(&f->intake), 3000);
	intake_select(&f->intake, NULL);
	sample(f, 3100, WALK_PID);
	assert_int_equal(f->taken, 1);
	assert_int_equal(f->last_let_in, WALK_PID);
	selection_destroy(selection);
}

/* ---- walks ---------------------------------------------------------------------------------- */

static void a_walk_with_the_tables_of_another_program_keeps_its_first_frame(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_tick tick = tick_of(f, WALK_PID);

	put_raw(f->profile, WALK_WINDOW, RAW + 1, 0, WALK_PROGRAM_PC, 0x1234);
	tick.sample.user_stack = RAW + 1;
	tick.sample.unwind_generation = f->w->process->number + 1;
	intake_sample(&f->intake, 3000, &tick.sample);
	assert_int_equal(counted(f, METRIC_UNWIND_STALE), 1);
	assert_true(last_added(f)->walked);
	assert_int_equal(last_added(f)->stack.count, 1);
	assert_int_equal(last_added(f)->stack.frames[0], WALK_PROGRAM_PC);
	assert_int_equal(last_added(f)->stack.end, ABI_UNWIND_UNKNOWN_MAPPING);
	assert_ptr_equal(last_added(f)->mappings, f->w->process->mappings);
}

static void a_stale_walk_whose_frames_were_lost_has_none(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_tick tick = tick_of(f, WALK_PID);

	tick.sample.user_stack = RAW + 9;
	tick.sample.unwind_generation = f->w->process->number + 1;
	intake_sample(&f->intake, 3000, &tick.sample);
	assert_true(last_added(f)->walked);
	assert_int_equal(last_added(f)->stack.count, 0);
}

static void a_walk_with_the_tables_of_the_program_is_complete(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_tick tick = tick_of(f, WALK_PID);

	tick.sample.unwind_generation = f->w->process->number;
	intake_sample(&f->intake, 3000, &tick.sample);
	assert_int_equal(counted(f, METRIC_UNWIND_STALE), 0);
	assert_false(last_added(f)->walked);
}

static void hand_in_unfinished(struct intake_fixture *f, uint32_t unwind_generation)
{
	struct abi_unfinished *u = walk_unfinished(WALK_WINDOW, 1);

	u->sample.exec_id = f->w->process->exec_id;
	u->sample.unwind_generation = unwind_generation;
	intake_unfinished(&f->intake, 3000, u);
	free(u);
}

static void an_unfinished_walk_is_finished(void **state)
{
	struct intake_fixture *f = *state;

	hand_in_unfinished(f, f->w->process->number);
	assert_int_equal(f->taken, 1);
	assert_walked(f->w, 1, 1, ABI_UNWIND_GAP);
}

static void an_unfinished_walk_that_waits_is_taken_before_it_is_added(void **state)
{
	struct intake_fixture *f = *state;

	f->w->waiting[0] = walk_program(f->w);
	hand_in_unfinished(f, 0);
	assert_int_equal(f->taken, 1);
	assert_int_equal(f->w->added_count, 0);
	walk_modules_come(f->w);
	pending_walks_retry(&f->w->walks, 10);
	assert_walked(f->w, 1, 1, ABI_UNWIND_GAP);
}

static void a_stale_unfinished_walk_is_not_finished(void **state)
{
	struct intake_fixture *f = *state;

	hand_in_unfinished(f, f->w->process->number + 1);
	assert_int_equal(counted(f, METRIC_UNWIND_STALE), 1);
	assert_int_equal(last_added(f)->stack.count, 1);
	assert_int_equal(counted(f, METRIC_UNWIND_FINISHED), 0);
}

static void an_unfinished_walk_that_is_not_wanted_is_dropped(void **state)
{
	struct intake_fixture *f = *state;

	intake_deinit(&f->intake);
	begin_intake(f, OTHER_PID);
	hand_in_unfinished(f, 0);
	assert_int_equal(f->taken, 0);
	assert_int_equal(f->w->added_count, 0);
	assert_int_equal(f->last_left_out, WALK_PID);
}

static void the_kernel_gets_the_tables_of_a_sampled_process(void **state)
{
	struct intake_fixture *f = *state;

	sample(f, 3000, WALK_PID);
	assert_int_equal(f->w->writes, 1);
	assert_int_equal(f->w->written.generation, f->w->process->number);
	sample(f, 3100, WALK_PID);
	assert_int_equal(f->w->writes, 1);
}

static void without_tables_samples_are_still_accepted(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_tick tick = tick_of(f, WALK_PID);

	f->intake.options.unwind = NULL;
	tick.sample.unwind_missed = 1;
	intake_sample(&f->intake, 3000, &tick.sample);
	assert_int_equal(f->w->added_count, 1);
	assert_int_equal(f->w->writes, 0);
}

/* ---- what is not certain -------------------------------------------------------------------- */

static void after_a_loss_uncertain_samples_are_counted(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_tick tick;
	uint64_t writes;

	sample(f, 2100, WALK_PID);
	writes = f->w->writes;
	show(f->w->f, WALK_PID, &f->w->f->program, (struct fake_process){ 0 });
	intake_lost(&f->intake, 2500, 2600);
	/* In a mapping that both the records and /proc show. */
	sample(f, 3000, WALK_PID);
	assert_int_equal(counted(f, METRIC_PROCESS_RESYNCS), 1);
	assert_int_equal(counted(f, METRIC_UNNAMED_LOST_MAPPING), 0);
	/* In none. */
	put_raw(f->profile, WALK_WINDOW, RAW + 1, 0, WALK_PROGRAM_PC, 0x1234);
	tick = tick_of(f, WALK_PID);
	tick.sample.user_stack = RAW + 1;
	intake_sample(&f->intake, 3100, &tick.sample);
	assert_int_equal(counted(f, METRIC_UNNAMED_LOST_MAPPING), 1);
	assert_int_equal(f->w->added_count, 3);
	/* The kernel gets no unwind tables of an uncertain program. */
	assert_int_equal(f->w->writes, writes);
}

static void without_a_loss_a_pc_in_no_mapping_is_not_uncertain(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_tick tick = tick_of(f, WALK_PID);

	put_raw(f->profile, WALK_WINDOW, RAW + 1, 0, 0x1234);
	tick.sample.user_stack = RAW + 1;
	intake_sample(&f->intake, 3000, &tick.sample);
	assert_int_equal(counted(f, METRIC_UNNAMED_LOST_MAPPING), 0);
}

static void a_process_that_is_gone_before_it_was_read_is_still_sampled(void **state)
{
	struct intake_fixture *f = *state;

	sample(f, 3000, NEW_PID);
	assert_int_equal(f->w->added_count, 1);
	assert_true(last_added(f)->process->unreadable);
}

/* ---- side-band ------------------------------------------------------------------------------ */

/* Memory without a file where libc was. Our /proc has no such process: nothing is certain there. */
static void see_memory_in_place_of_libc(struct intake_fixture *f)
{
	struct {
		struct abi_sightings head;
		struct abi_sighting of[1];
	} seen = { .head = { .tgid = WALK_PID, .window = WALK_WINDOW, .count = 1 },
		.of = { { .pc = WALK_LIBC_PC,
			.start = WALK_LIBC_PC & ~UINT64_C(0xfff),
			.end = (WALK_LIBC_PC & ~UINT64_C(0xfff)) + 0x1000 } } };

	intake_sightings(&f->intake, 3000, &seen.head);
}

static void mappings_seen_by_a_walk_reach_the_table(void **state)
{
	struct intake_fixture *f = *state;
	const struct module *libc = walk_libc(f->w);

	see_memory_in_place_of_libc(f);
	assert_ptr_not_equal(walk_libc(f->w), libc);
}

static void mappings_seen_by_a_walk_of_another_process_are_ignored(void **state)
{
	struct intake_fixture *f = *state;
	const struct module *libc = walk_libc(f->w);

	intake_deinit(&f->intake);
	begin_intake(f, OTHER_PID);
	see_memory_in_place_of_libc(f);
	assert_ptr_equal(walk_libc(f->w), libc);
}

static void the_mapping_where_a_walk_stopped_reaches_the_table(void **state)
{
	struct intake_fixture *f = *state;
	struct abi_unfinished *u = walk_unfinished(WALK_WINDOW, 1);
	const struct module *libc = walk_libc(f->w);

	u->sample.exec_id = f->w->process->exec_id;
	u->rest.pc = WALK_LIBC_PC & ~UINT64_C(0xfff);
	u->rest.mapping.start = u->rest.pc;
	u->rest.mapping.end = u->rest.pc + 0x1000;
	intake_unfinished(&f->intake, 3000, u);
	free(u);
	assert_ptr_not_equal(walk_libc(f->w), libc);
}

static void side_band_reaches_the_table(void **state)
{
	struct intake_fixture *f = *state;
	const struct processes_mmap mmap = {
		.time_ns = 3000,
		.pid = WALK_PID,
		.start = 0x900000,
		.length = 0x1000,
		.path = "//anon",
	};

	intake_mmap(&f->intake, &mmap);
	assert_non_null(module_at(f->w->process, 0x900000));
	intake_fork(&f->intake, 3100, NEW_PID, NEW_PID, WALK_PID, WALK_PID);
	assert_non_null(live(f->w->f, NEW_PID));
	intake_exit(&f->intake, 3200, NEW_PID, NEW_PID);
	assert_null(live(f->w->f, NEW_PID));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		INTAKE_CASE(a_sample_is_delivered_with_its_process),
		INTAKE_CASE(another_exec_id_is_another_program),
		INTAKE_CASE(a_sample_in_the_middle_of_an_exec_keeps_its_process),
		INTAKE_CASE(a_kernel_thread_has_no_program),
		INTAKE_CASE(a_process_over_the_limit_of_the_table_is_counted_as_lost),
		FOLLOWING_CASE(only_the_followed_process_and_its_children_are_taken),
		FOLLOWING_CASE(a_reused_pid_is_not_followed),
		FOLLOWING_CASE(a_new_thread_changes_nothing),
		FOLLOWING_CASE(a_renamed_process_stays_followed_or_left_out),
		INTAKE_CASE(the_selection_leaves_processes_out_until_it_changes),
		INTAKE_CASE(a_walk_with_the_tables_of_another_program_keeps_its_first_frame),
		INTAKE_CASE(a_stale_walk_whose_frames_were_lost_has_none),
		INTAKE_CASE(a_walk_with_the_tables_of_the_program_is_complete),
		INTAKE_CASE(an_unfinished_walk_is_finished),
		INTAKE_CASE(an_unfinished_walk_that_waits_is_taken_before_it_is_added),
		INTAKE_CASE(a_stale_unfinished_walk_is_not_finished),
		INTAKE_CASE(an_unfinished_walk_that_is_not_wanted_is_dropped),
		INTAKE_CASE(the_kernel_gets_the_tables_of_a_sampled_process),
		INTAKE_CASE(without_tables_samples_are_still_accepted),
		INTAKE_CASE(after_a_loss_uncertain_samples_are_counted),
		INTAKE_CASE(without_a_loss_a_pc_in_no_mapping_is_not_uncertain),
		INTAKE_CASE(a_process_that_is_gone_before_it_was_read_is_still_sampled),
		INTAKE_CASE(mappings_seen_by_a_walk_reach_the_table),
		INTAKE_CASE(mappings_seen_by_a_walk_of_another_process_are_ignored),
		INTAKE_CASE(the_mapping_where_a_walk_stopped_reaches_the_table),
		INTAKE_CASE(side_band_reaches_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
