/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/runtimes/runtimes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

enum { MAX_PROCESSES = 1 << 22 };

/* A live process whose program or library has a runtime. */
struct runtimes_process {
	uint32_t pid;
	struct abi_runtime_process how; /* kind 0: its file is not supported */
	bool of_library;
	bool configured; /* BPF's map has it */
	bool bound; /* to its exec id, so that it is not applied to a later program */
	bool refused; /* BPF's map had no room for it, which was counted */
};

static const struct runtime *const runtimes_all[] = {
#define RUNTIME(name) &runtime_##name,
#include "agent/sampler/runtimes/runtimes.def"
#undef RUNTIME
};

static int runtimes_create_states(struct runtimes *r)
{
	int err = 0;

	assert(r->options.row_count <= RUNTIMES_ROWS);
	for (size_t i = 0; i < r->options.row_count && !err; i++)
		if (r->options.rows[i]->create)
			err = r->options.rows[i]->create(r->options.metrics, &r->states[i]);
	return err;
}

int runtimes_init(struct runtimes *r, const struct runtimes_options *options)
{
	*r = (struct runtimes){ .options = *options };
	if (!options->rows) {
		r->options.rows = runtimes_all;
		r->options.row_count = ARRAY_SIZE(runtimes_all);
	}
	map_init(&r->processes, MAX_PROCESSES);
	return runtimes_create_states(r);
}

void runtimes_deinit(struct runtimes *r)
{
	uint64_t generation, process;
	size_t i = 0;

	while (map_next(&r->processes, &i, &generation, &process))
		free((void *)(uintptr_t)process);
	map_deinit(&r->processes);
	for (i = 0; i < r->options.row_count; i++)
		if (r->states[i])
			r->options.rows[i]->destroy(r->states[i]);
}

/* Sets *RET_ROW, unless it is NULL, to the number of the row that is returned. */
static const struct runtime *runtimes_detect(
	const struct runtimes *r, const struct index *index, size_t *ret_row)
{
	for (size_t i = 0; i < r->options.row_count; i++) {
		if (!r->options.rows[i]->detect(index))
			continue;
		if (ret_row)
			*ret_row = i;
		return r->options.rows[i];
	}
	return NULL;
}

bool runtimes_has(const struct runtimes *r, const struct index *index)
{
	return runtimes_detect(r, index, NULL) != NULL;
}

bool runtimes_configure(
	const struct runtimes *r, const struct index *index, struct abi_runtime_process *ret_how)
{
	const struct runtime *runtime = runtimes_detect(r, index, NULL);

	*ret_how = (struct abi_runtime_process){ 0 };
	return runtime && !runtime->configure(index, NULL, ret_how);
}

static void runtimes_log_refused(struct runtimes *r, struct runtimes_process *process, int err)
{
	r->refused = true;
	if (process->refused)
		return;
	process->refused = true;
	metrics_add(r->options.metrics, METRIC_RUNTIMES_REFUSED, 1);
	log_debug("a process's runtime cannot be configured, trying again", "pid=%u error=%d",
		process->pid, err);
}

/* Updates PROCESS in BPF's map, if needed. */
static void runtimes_tell(struct runtimes *r, struct runtimes_process *process)
{
	int err;

	if (process->bound || (process->configured && !process->how.exec_known))
		return;
	err = r->options.set(r->options.context, process->pid, &process->how);
	if (err) {
		runtimes_log_refused(r, process, err);
		return;
	}
	process->configured = true;
	process->bound = process->how.exec_known;
	if (process->bound) {
		assert(r->unbound > 0);
		r->unbound--;
	}
}

/* Adds an entry for GENERATION, which has none. Returns NULL without memory. */
static struct runtimes_process *runtimes_insert(struct runtimes *r, uint32_t pid,
	uint32_t generation, const struct abi_runtime_process *how, bool of_library)
{
	struct runtimes_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	*process = (struct runtimes_process){ .pid = pid, .how = *how, .of_library = of_library };
	if (map_set_pointer(&r->processes, generation, process)) {
		free(process);
		return NULL;
	}
	if (!how->kind)
		return process;
	process->how.generation = generation;
	r->unbound++;
	return process;
}

/*
 * Adds an entry for PROGRAM, whose runtime is that of ROW; a program's replaces a library's.
 * Returns NULL without memory, or if that has to wait.
 */
static struct runtimes_process *runtimes_add(
	struct runtimes *r, size_t row, const struct runtime_program *program)
{
	const struct runtime *runtime = r->options.rows[row];
	struct abi_runtime_process how = { 0 };
	int err = runtime->configure(program->index, program->load_bias, &how);

	if (err == -EAGAIN)
		return NULL;
	assert(err || how.kind);
	if (err) {
		how = (struct abi_runtime_process){ 0 };
		runtime->unsupported(r->states[row], program, r->options.metrics);
	}
	runtimes_ended(r, program->generation);
	return runtimes_insert(r, program->pid, program->generation, &how, program->is_library);
}

static void runtimes_set_exec_id(struct runtimes_process *process, uint32_t exec_id)
{
	process->how.exec_id = exec_id;
	process->how.exec_known = 1;
}

void runtimes_program(struct runtimes *r, const struct runtime_program *program)
{
	struct runtimes_process *process = map_get_pointer(&r->processes, program->generation);
	size_t row;

	assert(program->generation);
	if ((!process || (process->of_library && !program->is_library)) &&
		runtimes_detect(r, program->index, &row))
		process = runtimes_add(r, row, program);
	if (!process || !process->how.kind)
		return;
	if (program->exec_id && !process->bound)
		runtimes_set_exec_id(process, *program->exec_id);
	runtimes_tell(r, process);
}

void runtimes_forked(struct runtimes *r, uint32_t parent, uint32_t pid, uint32_t child)
{
	const struct runtimes_process *of = map_get_pointer(&r->processes, parent);
	struct runtimes_process *process;

	if (!of || !of->of_library || map_get_pointer(&r->processes, child))
		return;
	process = runtimes_insert(r, pid, child, &of->how, true);
	if (process && process->how.kind)
		runtimes_tell(r, process);
}

void runtimes_bind(struct runtimes *r, uint32_t generation, const uint32_t *exec_id)
{
	struct runtimes_process *process;

	if (!exec_id || !r->unbound)
		return;
	process = map_get_pointer(&r->processes, generation);
	if (!process || !process->how.kind || process->bound)
		return;
	runtimes_set_exec_id(process, *exec_id);
	if (process->configured)
		runtimes_tell(r, process);
}

void runtimes_retry(struct runtimes *r)
{
	uint64_t generation, value;
	size_t i = 0;

	if (!r->refused)
		return;
	r->refused = false;
	while (map_next(&r->processes, &i, &generation, &value)) {
		struct runtimes_process *process = (void *)(uintptr_t)value;

		if (process->refused)
			runtimes_tell(r, process);
	}
}

void runtimes_ended(struct runtimes *r, uint32_t generation)
{
	struct runtimes_process *process = map_get_pointer(&r->processes, generation);

	if (!process)
		return;
	map_remove(&r->processes, generation);
	if (process->configured)
		r->options.remove(r->options.context, process->pid);
	if (process->how.kind && !process->bound)
		r->unbound--;
	free(process);
}

/* Sets *RET_ROW to the row whose frames are of KIND, which BPF recorded. */
static bool runtimes_row_of_kind(const struct runtimes *r, uint32_t kind, size_t *ret_row)
{
	for (size_t i = 0; i < r->options.row_count; i++) {
		const struct runtime *row = r->options.rows[i];

		if (kind - row->first_frame_kind < row->frame_kind_count) {
			*ret_row = i;
			return true;
		}
	}
	return false;
}

void runtimes_sampled(const struct runtimes *r, const struct runtime_frame *frame)
{
	size_t row;

	if (runtimes_row_of_kind(r, frame->frame.kind, &row) && r->options.rows[row]->sampled)
		r->options.rows[row]->sampled(r->states[row], frame);
}

void runtimes_names(
	const struct runtimes *r, const struct runtime_frame *frame, struct runtime_names *names)
{
	size_t row;

	if (runtimes_row_of_kind(r, frame->frame.kind, &row))
		r->options.rows[row]->names(r->states[row], frame, names);
}

const struct runtime_fibers *runtimes_fibers(const struct runtime *const *rows, size_t row_count)
{
	static const struct runtime_fibers any = {
		.one = "fiber", .many = "fibers", .id = "FIBER"
	};
	const struct runtime_fibers *only = NULL;

	for (size_t i = 0; i < row_count; i++) {
		if (!rows[i]->fibers)
			continue;
		if (only)
			return &any;
		only = rows[i]->fibers;
	}
	return only ? only : &any;
}

const struct runtime_fibers *runtime_fibers(void)
{
	return runtimes_fibers(runtimes_all, ARRAY_SIZE(runtimes_all));
}

bool runtime_fibers_are_called(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes_all); i++) {
		const struct runtime_fibers *fibers = runtimes_all[i]->fibers;

		if (fibers && !strcmp(name, fibers->one))
			return true;
	}
	return false;
}
