/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/samples while each allocation fails in turn. */
#include "tests/unit/torture.h"

#include "agent/sampler/samples/intake.h"
#include "agent/sampler/samples/stack_resolver.h"
#include "bpf/unwind/arch.bpf.h"
#include "tests/unit/aggregator_fixture.h"
#include "tests/unit/raw_stack.h"
#include "tests/unit/walks_fixture.h"

/* ---- pending walks -------------------------------------------------------------------------- */

struct waiting_walks {
	struct walks_fixture *w;
	struct abi_unfinished *unfinished[3]; /* of threads 1 to 3 */
};

static void begin_walks(void *context)
{
	struct waiting_walks *walks = context;
	void *state = NULL;

	assert_int_equal(walks_set_up(&state), 0);
	walks->w = state;
	walks->w->waiting[0] = walk_program(walks->w);
	for (uint32_t i = 0; i < 3; i++)
		walks->unfinished[i] = walk_unfinished(WALK_WINDOW + i % 2, i + 1);
}

/* Three walks wait, first for one module, then for the next; meanwhile a window is sealed. */
static int let_walks_wait(void *context)
{
	const struct waiting_walks *walks = context;
	struct walks_fixture *w = walks->w;
	const struct module *libc = walk_libc(w);

	for (uint32_t i = 0; i < 3; i++)
		walk_finish_made(w, walks->unfinished[i]);
	w->waiting[0] = libc;
	pending_walks_module_known(&w->walks);
	pending_walks_retry(&w->walks, 2);
	pending_walks_retry(&w->walks, 2);
	pending_walks_flush(&w->walks, WALK_WINDOW);
	walk_modules_come(w);
	pending_walks_retry(&w->walks, 10);
	return 0;
}

static void each_walk_came_to_an_end(void *context, int result)
{
	const struct waiting_walks *walks = context;
	const struct walks_fixture *w = walks->w;
	void *state = walks->w;
	uint32_t tids = 0;

	assert_int_equal(result, 0);
	assert_int_equal(w->added_count + w->lost, 3);
	assert_int_equal(w->walks.waiting_bytes, 0);
	for (size_t i = 0; i < w->added_count; i++)
		tids |= 1U << w->added[i].record.sample.tid;
	if (w->lost)
		tids |= 1U << w->last_lost.tid;
	assert_int_equal(tids, 0xe);
	if (!torture_failed())
		assert_int_equal(w->lost, 0);
	for (uint32_t i = 0; i < 3; i++)
		free(walks->unfinished[i]);
	walks_tear_down(&state);
}

static void a_walk_without_memory_is_added_or_lost_but_not_both(void **state)
{
	struct waiting_walks walks;
	struct torture t = {
		.begin = begin_walks,
		.operation = let_walks_wait,
		.end = each_walk_came_to_an_end,
		.context = &walks,
		.optional = "*",
	};

	(void)state;
	torture_run(&t);
}

/* ---- code without a table ------------------------------------------------------------------- */

struct guessing {
	struct walks_fixture *w;
	struct abi_unfinished *unfinished[2]; /* of threads 1 and 2 */
};

static void begin_guessing(void *context)
{
	struct guessing *g = context;
	void *state = NULL;

	assert_int_equal(walks_set_up(&state), 0);
	g->w = state;
	walks_give_tables(g->w);
	g->w->waiting[0] = walk_program(g->w);
	for (uint32_t i = 0; i < 2; i++)
		g->unfinished[i] = walk_untabled(WALK_WINDOW, i + 1);
}

/* Two samples come with their returns and wait for the module. */
static int find_callers(void *context)
{
	const struct guessing *g = context;

	for (uint32_t i = 0; i < 2; i++) {
		walk_give_returns(g->w, i + 1);
		walk_finish_made(g->w, g->unfinished[i]);
	}
	walk_modules_come(g->w);
	pending_walks_retry(&g->w->walks, 10);
	return 0;
}

/* What fails costs one of them its callers, at most. */
static void each_caller_was_found_or_its_stack_ends(void *context, int result)
{
	const struct guessing *g = context;
	const struct walks_fixture *w = g->w;
	void *state = g->w;
	uint32_t guessed = 0;

	assert_int_equal(result, 0);
	assert_int_equal(w->added_count + w->lost, 2);
	assert_int_equal(w->walks.waiting_bytes, 0);
	for (size_t i = 0; i < w->added_count; i++) {
		if (w->added[i].stack.guessed)
			assert_guessed(&w->added[i]);
		else
			assert_int_equal(w->added[i].stack.count, 1);
		guessed += w->added[i].stack.guessed;
	}
	if (UNWIND_FINDS_RETURNS)
		assert_true(guessed >= (torture_failed() ? 1 : 2));
	for (uint32_t i = 0; i < 2; i++)
		free(g->unfinished[i]);
	walks_tear_down(&state);
}

static void returns_without_memory_cost_only_their_own_walk(void **state)
{
	struct guessing g;
	struct torture t = {
		.begin = begin_guessing,
		.operation = find_callers,
		.end = each_caller_was_found_or_its_stack_ends,
		.context = &g,
		.optional = "*",
	};

	(void)state;
	torture_run(&t);
}

/* ---- intake --------------------------------------------------------------------------------- */

struct sampling {
	struct walks_fixture *w;
	struct intake intake;
	unsigned int taken;
};

static const struct abi_stack *no_raw_stack(void *context, uint32_t window, uint64_t id)
{
	(void)context;
	(void)window;
	(void)id;
	return NULL;
}

static void ignore_leave_out(void *context, uint32_t tgid, bool out)
{
	(void)context;
	(void)tgid;
	(void)out;
}

static void ignore_time(void *context, uint32_t window, uint64_t time_ns)
{
	(void)window;
	(void)context;
	(void)time_ns;
}

static void count_taken(void *context, struct process *p, const struct abi_sample *sample)
{
	struct sampling *s = context;

	assert_int_equal(p->pid, sample->tgid);
	s->taken++;
}

static void add_to_walks(void *context, const struct attributed_sample *sample)
{
	struct sampling *s = context;

	s->w->walks.options.add(s->w, sample);
}

static void begin_sampling(void *context)
{
	struct sampling *s = context;
	void *state = NULL;

	*s = (struct sampling){ 0 };
	assert_int_equal(walks_set_up(&state), 0);
	s->w = state;
}

static int sample_a_child(void *context)
{
	struct sampling *s = context;
	struct abi_tick tick = { .sample = { .kind = ABI_TICK, .tgid = PARENT, .exec_id = 1 } };
	int err = intake_init(&s->intake, &(struct intake_options){
						  .processes = s->w->f->ps,
						  .unwind = s->w->unwind,
						  .walks = &s->w->walks,
						  .metrics = &s->w->f->metrics,
						  .follow_pid = WALK_PID,
						  .raw_stack = no_raw_stack,
						  .leave_out = ignore_leave_out,
						  .sampled = ignore_time,
						  .taken = count_taken,
						  .add = add_to_walks,
						  .context = s,
					  });

	if (err)
		return err;
	intake_fork(&s->intake, 2500, PARENT, PARENT, WALK_PID, WALK_PID);
	intake_sample(&s->intake, 3000, &tick.sample);
	return 0;
}

/* A child without an entry is not followed, and its samples are counted. */
static void the_sample_was_added_or_counted(void *context, int result)
{
	struct sampling *s = context;
	void *state = s->w;
	bool counted = count(s->w->f, METRIC_LOST_MEMORY_LIMIT) ||
		       count(s->w->f, METRIC_PROCESSES_REFUSED);

	if (!torture_failed())
		assert_int_equal(s->taken, 1);
	assert_int_equal(s->taken, s->w->added_count);
	if (!result)
		assert_true(s->taken || counted);
	intake_deinit(&s->intake);
	walks_tear_down(&state);
}

static void a_sample_without_memory_is_counted(void **state)
{
	struct sampling s;
	struct torture t = {
		.begin = begin_sampling,
		.operation = sample_a_child,
		.end = the_sample_was_added_or_counted,
		.context = &s,
		.optional = "*",
	};

	(void)state;
	torture_run(&t);
}

/* ---- stack resolver ------------------------------------------------------------------------- */

struct resolving {
	struct walks_fixture *w;
	struct profile *profile;
	uint32_t number;
};

static const struct abi_stack *raw_of_profile(void *context, uint32_t window, uint64_t id)
{
	const struct resolving *r = context;

	return profile_get_raw(r->profile, window, id);
}

static void ignore_module(void *context, struct process *p, const struct mapping *mapping)
{
	(void)context;
	(void)p;
	(void)mapping;
}

static void ignore_stack(void *context, struct process *p, const struct profile_stack *stack)
{
	(void)context;
	(void)p;
	(void)stack;
}

static void begin_resolving(void *context)
{
	struct resolving *r = context;
	void *state = NULL;

	assert_int_equal(walks_set_up(&state), 0);
	r->w = state;
	r->number = UINT32_MAX;
	assert_int_equal(profile_create(1 << 20, &r->profile), 0);
	put_raw(r->profile, WALK_WINDOW, 77, 0, WALK_PROGRAM_PC, WALK_LIBC_PC);
}

static int resolve_a_stack(void *context)
{
	struct resolving *r = context;
	const struct stack_request request = {
		.process = r->w->process, .window = WALK_WINDOW, .user_stack = 77
	};
	struct stack_resolver resolver;

	stack_resolver_init(&resolver, &(struct stack_resolver_options){
					       .metrics = &r->w->f->metrics,
					       .raw_stack = raw_of_profile,
					       .module_hit = ignore_module,
					       .stack_hit = ignore_stack,
					       .context = r,
				       });
	return stack_resolver_get(&resolver, r->profile, &request, &r->number);
}

static void the_stack_is_there_later(void *context, int result)
{
	struct resolving *r = context;
	void *state = r->w;

	assert_int_equal(result != 0, r->number == UINT32_MAX);
	assert_int_equal(resolve_a_stack(r), 0);
	assert_int_equal(profile_stack_at(r->profile, r->number).frame_count, 2);
	profile_destroy(r->profile);
	walks_tear_down(&state);
}

static void a_stack_that_finds_no_memory_is_refused(void **state)
{
	struct resolving r;
	struct torture t = {
		.begin = begin_resolving,
		.operation = resolve_a_stack,
		.end = the_stack_is_there_later,
		/* The allocation of the cache; without it the stack is resolved again. */
		.optional = "calloc",
		.context = &r,
	};

	(void)state;
	torture_run(&t);
}

/* ---- aggregator ----------------------------------------------------------------------------- */

static void begin_aggregating(void *context)
{
	struct aggregator_fixture **f = context;
	void *state = NULL;

	aggregator_set_up(&state);
	*f = state;
	(*f)->wanted = true;
	open_tap(*f, 1 << 20);
}

static int aggregate(void *context)
{
	struct aggregator_fixture *f = *(struct aggregator_fixture **)context;
	struct abi_tick tick = tick_of_window(WINDOW);
	struct abi_switch_out switch_out = switch_out_of_window(WINDOW);

	add_tick(f, &tick);
	add_switch_out(f, &switch_out);
	return 0;
}

/* A sample is in its window or lost; one that only the tap lacks counts as left out. */
static void each_sample_was_added_or_counted(void *context, int result)
{
	struct aggregator_fixture *f = *(struct aggregator_fixture **)context;
	uint64_t lost = metrics_get(&f->metrics, METRIC_LOST_MEMORY_LIMIT);
	uint64_t left_out = metrics_get(&f->metrics, METRIC_ON_DEMAND_LEFT_OUT);
	uint64_t ticks = aggregator_ticks(&f->aggregator);
	void *state = f;

	assert_int_equal(result, 0);
	assert_int_equal(profile_sample_count(f->windows[WINDOW]), ticks);
	assert_int_equal(f->waits_resolved + f->waits_lost, 1);
	assert_int_equal(ticks + f->waits_resolved + lost, 2);
	assert_int_equal(profile_sample_count(f->taps[0]) + left_out, ticks);
	assert_true(torture_failed() ? lost + left_out <= 1 : lost + left_out == 0);
	aggregator_tear_down(&state);
}

static void a_sample_without_memory_is_lost_where_there_is_none(void **state)
{
	struct aggregator_fixture *f;
	struct torture t = {
		.begin = begin_aggregating,
		.operation = aggregate,
		.end = each_sample_was_added_or_counted,
		.context = &f,
		.optional = "*",
	};

	(void)state;
	torture_run(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_walk_without_memory_is_added_or_lost_but_not_both),
		torture_test(returns_without_memory_cost_only_their_own_walk),
		torture_test(a_sample_without_memory_is_counted),
		torture_test(a_stack_that_finds_no_memory_is_refused),
		torture_test(a_sample_without_memory_is_lost_where_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
