/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/top/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/stacks.h"
#include "agent/sampler/seam/runtime_functions.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_ROWS = 1 << 20, /* rows of each kind */
	MAX_KEY_BYTES = 64 << 20,
	MAX_TEXT_BYTES = 64 << 20,
	MAX_PAIRS = 1 << 22,
};

DEFINE_AUTO(stacks);
DEFINE_AUTO(snapshot);

/* Identifies the row of a process or fiber. */
struct group_key {
	uint64_t fiber_id; /* 0 = the process as a whole */
	uint64_t process; /* process generation */
};

struct best {
	uint64_t ns;
	bool own; /* of a fiber: not a function of the runtime */
};

struct tally {
	struct rows *rows; /* borrowed from the snapshot */
	struct intern keys; /* struct group_key; number N is row N - 1 */
	struct map in_function; /* row << 32 | function → ns */
	struct best *best; /* by row: the function it is shown with */
	size_t capacity;
};

struct maker {
	const struct report_sources *sources;
	struct stacks *stacks;
	struct snapshot *snapshot;
	struct tally processes, fibers;
	uint64_t *counted_in; /* by function: number (from 1) of the last sample in its total */
	size_t counted_capacity;
};

static int tally_init(struct tally *g, struct rows *rows)
{
	g->rows = rows;
	map_init(&g->in_function, MAX_PAIRS);
	return intern_init(&g->keys, MAX_ROWS, MAX_KEY_BYTES);
}

static void tally_deinit(struct tally *g)
{
	intern_deinit(&g->keys);
	map_deinit(&g->in_function);
	free(g->best);
}

static void maker_deinit(struct maker *m)
{
	tally_deinit(&m->processes);
	tally_deinit(&m->fibers);
	free(m->counted_in);
}

/* ---- processes and fibers -------------------------------------------------------------------- */

static int begin_row(struct maker *m, const struct profile_sample *sample, struct row *row)
{
	const struct process_facts *p =
		window_processes_find(m->sources->processes, sample->process);
	const char *comm = p && *p->comm ? p->comm : sample->comm;
	const char *name = arena_strndup(&m->snapshot->texts, comm, strlen(comm));

	if (!name)
		return m->snapshot->texts.error;
	*row = (struct row){ .pid = sample->pid, .name = name, .detail = "" };
	return 0;
}

static int row_of(struct maker *m, struct tally *g, const struct profile_sample *sample,
	uint64_t fiber_id, size_t *ret_row)
{
	struct rows *rows = g->rows;
	struct group_key key = { fiber_id, sample->process };
	size_t known = rows->count;
	uint32_t number;
	int err;

	err = array_reserve(rows->rows, rows->capacity, known + 1, MAX_ROWS);
	if (!err)
		err = array_reserve(g->best, g->capacity, known + 1, MAX_ROWS);
	if (!err)
		err = intern_bytes(&g->keys, &key, sizeof(key), &number);
	if (err)
		return err;
	if (number > known) {
		err = begin_row(m, sample, &rows->rows[known]);
		if (err)
			return err;
		rows->rows[known].fiber_id = fiber_id;
		g->best[known] = (struct best){ 0 };
		rows->count++;
	}
	*ret_row = number - 1;
	return 0;
}

static int add_to_row(struct maker *m, struct tally *g, size_t number,
	const struct profile_sample *sample, uint32_t function)
{
	struct row *row = &g->rows->rows[number];
	uint64_t pair = (uint64_t)number << 32 | function, ns = 0;
	bool own;
	int err;

	row->self_ns += sample->weight;
	row->total_ns += sample->weight;
	if (sample->flags & ABI_SAMPLE_KERNEL)
		row->kernel_ns += sample->weight;
	map_get(&g->in_function, pair, &ns);
	ns += sample->weight;
	err = map_set(&g->in_function, pair, ns);
	if (err)
		return err;
	/* A runtime function describes a fiber only if it has no other. */
	own = !row->fiber_id ||
	      !runtime_function_is_own(functions_name(&m->snapshot->functions, function));
	if (own == g->best[number].own ? ns > g->best[number].ns : own) {
		g->best[number] = (struct best){ ns, own };
		row->detail = functions_name(&m->snapshot->functions, function);
	}
	return 0;
}

static int add_process(
	struct maker *m, const struct profile_sample *sample, const struct stack_facts *facts)
{
	uint32_t leaf = functions_innermost(&m->snapshot->functions, m->stacks->ids[facts->first]);
	size_t number;
	int err = row_of(m, &m->processes, sample, 0, &number);

	if (err)
		return err;
	return add_to_row(m, &m->processes, number, sample, leaf);
}

/* The innermost function of FRAME outside its runtime, or 0. */
static uint32_t own_function(const struct functions *f, uint32_t frame)
{
	size_t count;
	const uint32_t *numbers = functions_of_frame(f, frame, &count);

	for (size_t i = 0; i < count; i++) {
		if (!runtime_function_is_own(functions_name(f, numbers[i])))
			return numbers[i];
	}
	return 0;
}

/*
 * The function that a fiber is shown with: its innermost one outside the runtime and the
 * kernel, else its innermost.
 */
static uint32_t fiber_function(
	const struct maker *m, const struct profile_sample *sample, const struct stack_facts *facts)
{
	const struct functions *f = &m->snapshot->functions;
	const uint32_t *frames = m->stacks->ids + facts->first;
	uint32_t kernel = profile_stack_at(m->sources->profile, sample->stack).kernel_count;
	uint32_t function = 0, count = facts->count - facts->marked;

	if (kernel >= count)
		return functions_innermost(f, frames[0]);
	for (uint32_t i = kernel; i < count && !function; i++)
		function = own_function(f, frames[i]);
	return function ? function : functions_innermost(f, frames[kernel]);
}

static int add_fiber(
	struct maker *m, const struct profile_sample *sample, const struct stack_facts *facts)
{
	size_t number;
	int err;

	if (!sample->fiber_id)
		return 0;
	err = row_of(m, &m->fibers, sample, sample->fiber_id, &number);
	if (err)
		return err;
	return add_to_row(m, &m->fibers, number, sample, fiber_function(m, sample, facts));
}

/* ---- functions ------------------------------------------------------------------------------- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Adds rows for new functions; function N has row N - 1. */
static int grow_functions(struct maker *m)
{
	const struct functions *f = &m->snapshot->functions;
	struct rows *rows = &m->snapshot->by[ROWS_FUNCTION];
	size_t count = functions_count(f);
	int err;

	err = array_reserve(rows->rows, rows->capacity, count, MAX_ROWS);
	if (!err)
		err = array_reserve(m->counted_in, m->counted_capacity, count, MAX_ROWS);
	if (err)
		return err;
	for (; rows->count < count; rows->count++) {
		uint32_t function = (uint32_t)rows->count + 1;

		rows->rows[rows->count] = (struct row){
			.name = functions_name(f, function),
			.detail = file_name(functions_module(f, function)),
		};
		m->counted_in[rows->count] = 0;
	}
	return 0;
}

static void add_total(struct maker *m, uint32_t frame, uint64_t turn, uint64_t weight)
{
	struct row *rows = m->snapshot->by[ROWS_FUNCTION].rows;
	size_t count;
	const uint32_t *numbers = functions_of_frame(&m->snapshot->functions, frame, &count);

	for (size_t i = 0; i < count; i++) {
		uint32_t row = numbers[i] - 1;

		/* Counts a recursive function once per stack. */
		if (m->counted_in[row] != turn)
			rows[row].total_ns += weight;
		m->counted_in[row] = turn;
	}
}

static int add_functions(struct maker *m, const struct profile_sample *sample,
	const struct stack_facts *facts, uint64_t turn)
{
	const struct functions *f = &m->snapshot->functions;
	const uint32_t *frames = m->stacks->ids + facts->first;
	int err = grow_functions(m);

	if (err)
		return err;
	m->snapshot->by[ROWS_FUNCTION].rows[functions_innermost(f, frames[0]) - 1].self_ns +=
		sample->weight;
	for (uint32_t i = 0; i < facts->count; i++)
		add_total(m, frames[i], turn, sample->weight);
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int snapshot_add_samples(struct maker *m)
{
	const struct profile *profile = m->sources->profile;
	struct snapshot *s = m->snapshot;

	for (size_t i = 0; i < profile_sample_count(profile); i++) {
		const struct profile_sample *sample = profile_sample_at(profile, i);
		const struct stack_facts *facts;
		int err;

		err = stacks_get(m->stacks, sample, &facts);
		if (!err)
			err = add_process(m, sample, facts);
		if (!err)
			err = add_functions(m, sample, facts, i + 1);
		if (!err)
			err = add_fiber(m, sample, facts);
		if (err)
			return err;
		s->weight_ns += sample->weight;
		stacks_account(m->stacks, facts, sample, &s->summary);
	}
	return 0;
}

static int make(struct snapshot *s, const struct report_sources *sources)
{
	autocall(maker_deinit) struct maker m = { .sources = sources, .snapshot = s };
	autocall(auto_stacks_destroy) struct stacks *stacks = NULL;
	int err;

	err = tally_init(&m.processes, &s->by[ROWS_PROCESS]);
	if (!err)
		err = tally_init(&m.fibers, &s->by[ROWS_FIBER]);
	if (!err)
		err = stacks_create(sources, NULL, functions_add, &s->functions, &stacks);
	if (err)
		return err;
	m.stacks = stacks;
	return snapshot_add_samples(&m);
}

int snapshot_create(const struct report_sources *sources, struct snapshot **ret_snapshot)
{
	autocall(auto_snapshot_destroy) struct snapshot *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	arena_init(&s->texts, MAX_TEXT_BYTES);
	err = functions_init(&s->functions);
	if (!err)
		err = make(s, sources);
	if (err)
		return err;
	*ret_snapshot = take(s);
	return 0;
}

void snapshot_destroy(struct snapshot *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < ROWS_KINDS; i++)
		rows_deinit(&s->by[i]);
	functions_deinit(&s->functions);
	arena_deinit(&s->texts);
	free(s);
}
