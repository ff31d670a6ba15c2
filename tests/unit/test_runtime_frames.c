/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A runtime's frames all the way: from the words that BPF records, through intake, the stack
 * resolver and the row of the runtime, to pprof. The test's runtime reads the name of a code object
 * when a sample contains it, as the object may be gone when the window is reported.
 */
#include <errno.h>
#include <libdeflate.h>
#include <stdio.h>

#include "agent/report/report.h"
#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/runtimes/runtimes.h"
#include "agent/sampler/samples/intake.h"
#include "agent/sampler/samples/stack_resolver.h"
#include "agent/sampler/sealing.h"
#include "agent/sampler/symbolize/symbolize.h"
#include "proto/profile.pb-c.h"
#include "tests/unit/raw_stack.h"
#include "tests/unit/walks_fixture.h"

enum {
	RAW = 77,
	KIND = 7,
	NO_KIND = 99, /* in no row */
	NAMES = 4,
	PPROF_BYTES = 1 << 20,
};

#define CODE UINT64_C(0x00fedcba98765432)

/* A code object in the memory of the sampled process. */
struct code_object {
	uint64_t address;
	uint32_t cookie;
	const char *name; /* NULL = freed */
};

/* The names that the runtime has read. */
struct names_read {
	struct runtime_frame of;
	const char *name;
};

struct runtime_fixture {
	struct walks_fixture *w;
	struct intake intake;
	struct stack_resolver resolver;
	struct profile *profile;
	struct runtimes runtimes;
	uint32_t samples;
};

/* The row's state. */
struct testvm {
	struct names_read names[NAMES];
	size_t count;
};

/* The memory that the runtime reads. */
static struct code_object memory[2];

/* ---- the runtime ---------------------------------------------------------------------------- */

static bool testvm_detect(const struct index *index)
{
	(void)index;
	return false;
}

static int testvm_create(struct metrics *metrics, void **ret_state)
{
	(void)metrics;
	*ret_state = calloc(1, sizeof(struct testvm));
	return *ret_state ? 0 : -ENOMEM;
}

static const struct names_read *testvm_find(
	const struct testvm *vm, const struct runtime_frame *frame)
{
	for (size_t i = 0; i < vm->count; i++) {
		const struct runtime_frame *of = &vm->names[i].of;

		if (of->generation == frame->generation &&
			of->frame.address == frame->frame.address &&
			of->frame.cookie == frame->frame.cookie)
			return &vm->names[i];
	}
	return NULL;
}

static void testvm_sampled(void *state, const struct runtime_frame *frame)
{
	struct testvm *vm = state;

	if (testvm_find(vm, frame) || vm->count == NAMES)
		return;
	for (size_t i = 0; i < 2; i++)
		if (memory[i].name && memory[i].address == frame->frame.address &&
			memory[i].cookie == frame->frame.cookie)
			vm->names[vm->count++] =
				(struct names_read){ .of = *frame, .name = memory[i].name };
}

static void testvm_names(
	void *state, const struct runtime_frame *frame, struct runtime_names *names)
{
	const struct names_read *read = testvm_find(state, frame);

	names->mapping = "[testvm]";
	if (!read)
		return;
	names->line_count = 1;
	names->lines[0] = (struct index_frame){ .name = read->name,
		.linkage = read->name,
		.file = "app.vm",
		.line = frame->frame.position };
}

static const struct runtime runtime_testvm = {
	.detect = testvm_detect,
	.first_frame_kind = KIND,
	.frame_kind_count = 1,
	.create = testvm_create,
	.destroy = free,
	.sampled = testvm_sampled,
	.names = testvm_names,
};
static const struct runtime *const rows[] = { &runtime_testvm };

/* ---- the sampler ---------------------------------------------------------------------------- */

static const struct abi_stack *raw_stack(void *context, uint32_t window, uint64_t id)
{
	const struct runtime_fixture *f = context;

	return profile_get_raw(f->profile, window, id);
}

static void leave_out(void *context, uint32_t tgid, bool out)
{
	(void)context;
	(void)tgid;
	assert_false(out);
}

static void sampled_at(void *context, uint32_t window, uint64_t time_ns)
{
	(void)window;
	(void)context;
	(void)time_ns;
}

static void taken(void *context, struct process *p, const struct abi_sample *sample)
{
	(void)context;
	(void)sample;
	p->sampled = true;
}

static void module_hit(void *context, struct process *p, const struct mapping *mapping)
{
	(void)context;
	(void)p;
	assert_non_null(mapping);
}

static void stack_hit(void *context, struct process *p, const struct profile_stack *stack)
{
	(void)context;
	(void)p;
	assert_true(stack->frame_count > 0);
}

static void runtime_hit(void *context, const struct process *p, const struct abi_frame *frame)
{
	const struct runtime_fixture *f = context;

	runtimes_sampled(&f->runtimes,
		&(struct runtime_frame){ .pid = p->pid, .generation = p->number, .frame = *frame });
}

static void add(void *context, const struct attributed_sample *a)
{
	struct runtime_fixture *f = context;
	const struct stack_request request = {
		.process = a->process,
		.window = a->record->window,
		.user_stack = a->record->user_stack,
		.walked = a->walked,
		.mappings = a->mappings,
	};
	struct profile_sample sample = { .process = a->process->number,
		.pid = a->process->pid,
		.tid = f->samples++,
		.count = 1,
		.weight = 1000 };

	assert_int_equal(stack_resolver_get(&f->resolver, f->profile, &request, &sample.stack), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

static int setup(void **state)
{
	struct runtime_fixture *f = calloc(1, sizeof(*f));
	void *walks = NULL;

	if (!f || walks_set_up(&walks))
		return -1;
	f->w = walks;
	memory[0] = (struct code_object){ CODE, 0x12345678, "Object.run" };
	memory[1] = (struct code_object){ CODE + 64, 5, "Object.main" };
	assert_int_equal(profile_create(1 << 20, &f->profile), 0);
	assert_int_equal(runtimes_init(&f->runtimes,
				 &(struct runtimes_options){
					 .metrics = &f->w->f->metrics,
					 .rows = rows,
					 .row_count = 1,
				 }),
		0);
	stack_resolver_init(&f->resolver, &(struct stack_resolver_options){
						  .metrics = &f->w->f->metrics,
						  .raw_stack = raw_stack,
						  .module_hit = module_hit,
						  .stack_hit = stack_hit,
						  .runtime_hit = runtime_hit,
						  .context = f,
					  });
	*state = f;
	return intake_init(&f->intake, &(struct intake_options){
					       .processes = f->w->f->ps,
					       .walks = &f->w->walks,
					       .metrics = &f->w->f->metrics,
					       .raw_stack = raw_stack,
					       .leave_out = leave_out,
					       .sampled = sampled_at,
					       .taken = taken,
					       .add = add,
					       .context = f,
				       });
}

static int teardown(void **state)
{
	struct runtime_fixture *f = *state;
	void *walks = f->w;

	intake_deinit(&f->intake);
	runtimes_deinit(&f->runtimes);
	profile_destroy(f->profile);
	walks_tear_down(&walks);
	free(f);
	return 0;
}

#define RUNTIME_CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Takes a sample of the stack RAW of process PID. */
static void take_sample(struct runtime_fixture *f, uint64_t time_ns, uint32_t pid)
{
	const struct process *p = live(f->w->f, pid);
	const struct abi_tick tick = { .sample = { .kind = ABI_TICK,
					       .tgid = pid,
					       .tid = pid,
					       .user_stack = RAW,
					       .window = WALK_WINDOW,
					       .exec_id = p->exec_id } };

	intake_sample(&f->intake, time_ns, &tick.sample);
}

/* ---- the report ----------------------------------------------------------------------------- */

static const struct index *no_index(void *context, const struct module *module)
{
	(void)context;
	(void)module;
	return NULL;
}

static void report_names(
	void *context, uint32_t process, const struct abi_frame *frame, struct runtime_names *names)
{
	const struct runtime_fixture *f = context;
	const struct process *p = processes_find(f->w->f->ps, process);

	runtimes_names(&f->runtimes,
		&(struct runtime_frame){ .pid = p->pid, .generation = process, .frame = *frame },
		names);
}

static struct symbolize *make_symbolize(struct runtime_fixture *f)
{
	struct symbolize *symbolize;

	assert_int_equal(symbolize_create(
				 &(struct symbolize_options){
					 .modules = f->w->f->modules,
					 .index = no_index,
					 .runtime_names = report_names,
					 .context = f,
				 },
				 &symbolize),
		0);
	return symbolize;
}

static Perftools__Profiles__Profile *report(struct runtime_fixture *f)
{
	struct symbolize *symbolize = make_symbolize(f);
	struct window_processes described;
	const struct report_sources sources = {
		.profile = f->profile,
		.processes = &described,
		.anon_module = processes_anon_module(f->w->f->ps),
		.symbolize = symbolize,
		.metrics = &f->w->f->metrics,
	};
	const struct report_options options = {
		.types.of[SAMPLE_TYPE_TICKS] = { .count = { "samples", "count" },
			.weight = { "cpu", "nanoseconds" },
			.labels = SAMPLE_LABELS_OF_RECORD },
		.period = 1000,
	};
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	uint8_t *plain = malloc(PPROF_BYTES);
	Perftools__Profiles__Profile *message;
	struct report_summary summary;
	struct buffer out;
	size_t size;

	window_processes_init(&described);
	sealing_describe(f->profile, f->w->f->ps, &f->w->f->metrics, &described);
	buffer_init(&out, SIZE_MAX);
	assert_int_equal(report_pprof(&sources, &options, &out, &summary), 0);
	assert_int_equal(
		libdeflate_gzip_decompress(d, out.bytes, out.size, plain, PPROF_BYTES, &size), 0);
	message = perftools__profiles__profile__unpack(NULL, size, plain);
	assert_non_null(message);
	libdeflate_free_decompressor(d);
	window_processes_deinit(&described);
	symbolize_destroy(symbolize);
	buffer_deinit(&out);
	free(plain);
	return message;
}

/* Frame FRAME of sample SAMPLE as "mapping: function: line"; "" where there is none. */
static void assert_location(
	const Perftools__Profiles__Profile *m, size_t sample, size_t frame, const char *expected)
{
	const Perftools__Profiles__Location *location =
		m->location[m->sample[sample]->location_id[frame] - 1];
	const Perftools__Profiles__Line *line = location->n_line ? location->line[0] : NULL;
	char text[256];

	assert_true(frame < m->sample[sample]->n_location_id);
	snprintf(text, sizeof(text), "%s: %s: %lld",
		m->string_table[m->mapping[location->mapping_id - 1]->filename],
		line ? m->string_table[m->function[line->function_id - 1]->name] : "",
		line ? (long long)line->line : 0);
	assert_string_equal(text, expected);
}

/* ---- cases ---------------------------------------------------------------------------------- */

/* A frame's two words. */
#define WORDS(kind, address, position, cookie)                  \
	((uint64_t)(kind) << ABI_FRAME_KIND_SHIFT | (address)), \
		((uint64_t)(position) << ABI_FRAME_POSITION_SHIFT | (cookie))

static void frames_of_a_runtime_go_from_bpf_to_pprof(void **state)
{
	struct runtime_fixture *f = *state;
	Perftools__Profiles__Profile *m;

	put_raw(f->profile, WALK_WINDOW, RAW, ABI_STACK_RUNTIME_FRAMES,
		WORDS(KIND, CODE, 17, 0x12345678), WALK_LIBC_PC, WORDS(KIND, CODE + 64, 3, 5),
		WALK_PROGRAM_PC);
	take_sample(f, 3000, WALK_PID);
	memory[0].name = memory[1].name = NULL; /* the process frees the objects */
	take_sample(f, 4000, WALK_PID);
	m = report(f);
	assert_int_equal(m->n_sample, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(m->sample[i]->n_location_id, 5); /* and its mark */
		assert_location(m, i, 0, "[testvm]: Object.run: 17");
		assert_location(m, i, 2, "[testvm]: Object.main: 3");
	}
	/* All native frames but the first are calls. */
	assert_int_equal(m->location[m->sample[0]->location_id[1] - 1]->address & 0xfff, 0x00f);
	assert_int_equal(m->location[m->sample[0]->location_id[3] - 1]->address & 0xfff, 0x00f);
	assert_int_equal(count(f->w->f, METRIC_FRAMES_NAMED), 4);
	perftools__profiles__profile__free_unpacked(m, NULL);
}

/* The child has the parent's stacks and objects, but their names are read from its own memory. */
static void a_forked_child_has_names_of_its_own(void **state)
{
	struct runtime_fixture *f = *state;
	Perftools__Profiles__Profile *m;

	put_raw(f->profile, WALK_WINDOW, RAW, ABI_STACK_RUNTIME_FRAMES,
		WORDS(KIND, CODE, 1, 0x12345678));
	take_sample(f, 3000, WALK_PID);
	forks(f->w->f, 3500, WALK_PID, 250);
	memory[0].name = "Child.run";
	take_sample(f, 4000, 250);
	m = report(f);
	assert_int_equal(m->n_sample, 2);
	assert_location(m, 0, 0, "[testvm]: Object.run: 1");
	assert_location(m, 1, 0, "[testvm]: Child.run: 1");
	perftools__profiles__profile__free_unpacked(m, NULL);
}

static void an_object_that_was_freed_before_it_was_read_has_no_name(void **state)
{
	struct runtime_fixture *f = *state;
	Perftools__Profiles__Profile *m;

	put_raw(f->profile, WALK_WINDOW, RAW, ABI_STACK_RUNTIME_FRAMES,
		WORDS(KIND, CODE, 1, 0x12345679));
	take_sample(f, 3000, WALK_PID);
	m = report(f);
	assert_location(m, 0, 0, "[testvm]: : 0");
	assert_int_equal(count(f->w->f, METRIC_FRAMES_NO_SYMBOL), 1);
	perftools__profiles__profile__free_unpacked(m, NULL);
}

static void a_frame_of_an_unknown_kind_stays_and_is_counted(void **state)
{
	struct runtime_fixture *f = *state;
	Perftools__Profiles__Profile *m;

	put_raw(f->profile, WALK_WINDOW, RAW, ABI_STACK_RUNTIME_FRAMES,
		WORDS(NO_KIND, CODE, 1, 0x12345678), WORDS(KIND, CODE, 2, 0x12345678));
	take_sample(f, 3000, WALK_PID);
	m = report(f);
	assert_int_equal(m->sample[0]->n_location_id, 3);
	assert_location(m, 0, 0, "[runtime]: : 0");
	assert_location(m, 0, 1, "[testvm]: Object.run: 2");
	assert_int_equal(count(f->w->f, METRIC_FRAMES_NO_RUNTIME), 1);
	perftools__profiles__profile__free_unpacked(m, NULL);
}

static void a_stack_that_ends_within_a_frame_is_cut_there(void **state)
{
	struct runtime_fixture *f = *state;
	const uint64_t words[] = { WORDS(KIND, CODE, 2, 0x12345678), WORDS(KIND, CODE + 64, 3, 5) };
	Perftools__Profiles__Profile *m;

	put_raw_frames(f->profile,
		&(struct abi_stack){ .window = WALK_WINDOW,
			.id = RAW,
			.flags = ABI_STACK_RUNTIME_FRAMES | ABI_UNWIND_ROOT
								    << ABI_STACK_END_SHIFT },
		words, 3);
	take_sample(f, 3000, WALK_PID);
	m = report(f);
	assert_int_equal(m->sample[0]->n_location_id, 2); /* and its mark */
	assert_location(m, 0, 0, "[testvm]: Object.run: 2");
	assert_int_equal(count(f->w->f, METRIC_UNWIND_DEPTH), 1);
	assert_int_equal(count(f->w->f, METRIC_STACKS_COMPLETE), 0);
	perftools__profiles__profile__free_unpacked(m, NULL);
}

/* User space finishes the walk behind the frames that the kernel found. */
static void an_unfinished_walk_keeps_the_frames_of_a_runtime(void **state)
{
	struct runtime_fixture *f = *state;
	struct walks_fixture *w = f->w;
	struct abi_unfinished *u = walk_unfinished(WALK_WINDOW, 1);
	/* The second frame is incomplete. */
	const uint64_t words[] = { WORDS(KIND, CODE, 2, 0x12345678), WORDS(KIND, CODE, 3, 0) };
	Perftools__Profiles__Profile *m;

	w->waiting[0] = walk_program(w);
	u->sample.exec_id = w->process->exec_id;
	u->sample.user_stack = RAW;
	put_raw_frames(f->profile,
		&(struct abi_stack){
			.window = WALK_WINDOW, .id = RAW, .flags = ABI_STACK_RUNTIME_FRAMES },
		words, 3);
	intake_unfinished(&f->intake, 3000, u);
	free(u);
	assert_int_equal(w->added_count, 0);
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	assert_int_equal(w->added_count, 1);
	assert_int_equal(w->added[0].stack.count, 3);
	add(f, &(struct attributed_sample){ .process = w->added[0].process,
		       .record = &w->added[0].record.sample,
		       .walked = &w->added[0].stack,
		       .mappings = w->added[0].mappings });
	m = report(f);
	assert_int_equal(m->sample[0]->n_location_id, 3);
	assert_location(m, 0, 0, "[testvm]: Object.run: 2");
	assert_int_equal(m->location[m->sample[0]->location_id[1] - 1]->address & 0xfff, 0x00f);
	perftools__profiles__profile__free_unpacked(m, NULL);
}

static void words_of_a_runtime_are_not_looked_up_as_pcs(void **state)
{
	struct runtime_fixture *f = *state;

	take_sample(f, 2100, WALK_PID);
	show(f->w->f, WALK_PID, &f->w->f->program, (struct fake_process){ 0 });
	intake_lost(&f->intake, 2500, 2600);
	put_raw(f->profile, WALK_WINDOW, RAW, ABI_STACK_RUNTIME_FRAMES, WALK_PROGRAM_PC,
		WORDS(KIND, CODE, 2, 0x12345678));
	take_sample(f, 3000, WALK_PID);
	assert_int_equal(count(f->w->f, METRIC_PROCESS_RESYNCS), 1);
	assert_int_equal(count(f->w->f, METRIC_UNNAMED_LOST_MAPPING), 0);
}

/* The kernel walked with the tables of another program: only the pc would be certain. */
static void a_stale_stack_that_begins_in_a_runtime_has_no_frames(void **state)
{
	struct runtime_fixture *f = *state;
	const struct abi_tick tick = { .sample = { .kind = ABI_TICK,
					       .tgid = WALK_PID,
					       .user_stack = RAW,
					       .window = WALK_WINDOW,
					       .unwind_generation = f->w->process->number + 1,
					       .exec_id = f->w->process->exec_id } };

	put_raw(f->profile, WALK_WINDOW, RAW, ABI_STACK_RUNTIME_FRAMES,
		WORDS(KIND, CODE, 1, 0x12345678), WALK_PROGRAM_PC);
	intake_sample(&f->intake, 3000, &tick.sample);
	assert_int_equal(count(f->w->f, METRIC_UNWIND_STALE), 1);
	assert_int_equal(profile_stack_at(f->profile, 0).frame_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUNTIME_CASE(frames_of_a_runtime_go_from_bpf_to_pprof),
		RUNTIME_CASE(a_forked_child_has_names_of_its_own),
		RUNTIME_CASE(an_object_that_was_freed_before_it_was_read_has_no_name),
		RUNTIME_CASE(a_frame_of_an_unknown_kind_stays_and_is_counted),
		RUNTIME_CASE(a_stack_that_ends_within_a_frame_is_cut_there),
		RUNTIME_CASE(an_unfinished_walk_keeps_the_frames_of_a_runtime),
		RUNTIME_CASE(words_of_a_runtime_are_not_looked_up_as_pcs),
		RUNTIME_CASE(a_stale_stack_that_begins_in_a_runtime_has_no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
