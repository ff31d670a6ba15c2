/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table itself. A pid maps to its newest generation, even for a moment after its end: the
 * kernel may still sample an exiting thread after it reported the exit. A number maps to its
 * generation until that is freed.
 *
 * Generations without samples are freed at their end (except the last few, for such late samples),
 * so a node that starts thousands of processes a second costs no memory.
 */
#include "agent/sampler/process/processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/process/proc_reader.h"
#include "agent/sampler/process/table.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"

enum {
	MAX_KNOWN_FILES = 16384,
};

DEFINE_AUTO(processes);

/* Creates the modules that stand for what is no file, first, so that they exist at every limit. */
static int make_fixed_modules(struct processes *ps)
{
	const struct module_id none = { 0 };
	struct modules *modules = ps->options.modules;
	int err;

	err = modules_get(modules, MODULE_ANON, &none, "//anon", &ps->anon);
	if (!err)
		err = modules_get(modules, MODULE_VDSO, &none, "[vdso]", &ps->vdso);
	if (!err)
		err = modules_get(modules, MODULE_SPECIAL, &none, "[unknown]", &ps->unknown);
	return err;
}

int processes_create(const struct processes_options *options, struct processes **ret_processes)
{
	autocall(auto_processes_destroy) struct processes *ps = calloc(1, sizeof(*ps));
	int err;

	if (!ps)
		return -ENOMEM;
	ps->options = *options;
	/* Ended generations are in the maps too, at most as many again. */
	map_init(&ps->by_pid, 2 * options->limit + RECENTLY_ENDED);
	map_init(&ps->by_number, 2 * options->limit + RECENTLY_ENDED);
	map_init(&ps->search.unknown, options->limit);
	err = file_ids_create(MAX_KNOWN_FILES, options->build_ids, &ps->files);
	if (!err)
		err = make_fixed_modules(ps);
	if (err)
		return err;
	*ret_processes = take(ps);
	return 0;
}

bool processes_identify(
	struct processes *ps, const struct module_id *unseen, struct module_id *ret_id)
{
	const struct proc_mapping mapping = { .device = unseen->file.device,
		.inode = unseen->file.inode,
		.generation = unseen->file.generation,
		.path = "" };

	return file_ids_known(ps->files, &mapping, &unseen->build_id, ret_id);
}

static void process_free(struct processes *ps, struct process *p)
{
	if (ps->options.forget)
		ps->options.forget(ps->options.context, p);
	mappings_unref(p->mappings);
	table_shown_free(p->shown);
	cgroup_paths_unref(p->cgroups);
	free(p->other_path);
	free(p->hidden);
	free(p);
}

void processes_destroy(struct processes *ps)
{
	uint64_t number, pointer;
	size_t i = 0;

	if (!ps)
		return;
	while (map_next(&ps->by_number, &i, &number, &pointer))
		process_free(ps, (struct process *)(uintptr_t)pointer);
	map_deinit(&ps->by_number);
	map_deinit(&ps->by_pid);
	map_deinit(&ps->search.unknown);
	file_ids_destroy(ps->files);
	free(ps);
}

static void forget_pid(struct processes *ps, const struct process *p)
{
	if (map_get_pointer(&ps->by_pid, p->pid) == p)
		map_remove(&ps->by_pid, p->pid);
}

static void processes_forget(struct processes *ps, struct process *p)
{
	forget_pid(ps, p);
	map_remove(&ps->by_number, p->number);
	process_free(ps, p);
}

struct process *table_live(struct processes *ps, uint32_t pid)
{
	struct process *p = map_get_pointer(&ps->by_pid, pid);

	return p && !p->ended ? p : NULL;
}

static int processes_enter(struct processes *ps, struct process *p)
{
	int err = map_set_pointer(&ps->by_number, p->number, p);

	if (err)
		return err;
	err = map_set_pointer(&ps->by_pid, p->pid, p);
	if (err)
		map_remove(&ps->by_number, p->number);
	return err;
}

/*
 * A machine that starts 2,000 programs a second uses up all numbers in twelve days. After that, the
 * next number that is not in use is taken.
 */
static uint32_t processes_next_number(const struct processes *ps)
{
	uint32_t number = ps->last_number + 1;
	uint64_t pointer;

	while (number == 0 || map_get(&ps->by_number, number, &pointer))
		number++;
	return number;
}

struct process *table_begin(
	struct processes *ps, uint32_t pid, uint64_t start_ns, struct mappings *shared)
{
	struct process *p;

	if (ps->live >= ps->options.limit) {
		metrics_add(ps->options.metrics, METRIC_PROCESSES_REFUSED, 1);
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->mappings = shared ? mappings_ref(shared) : mappings_create();
	p->pid = pid;
	p->number = processes_next_number(ps);
	p->start_ns = start_ns;
	if (!p->mappings || processes_enter(ps, p)) {
		process_free(ps, p);
		return NULL;
	}
	ps->last_number = p->number;
	ps->live++;
	return p;
}

/* Keeps a sampled generation for the sweep. */
static void keep_ended(struct processes *ps, struct process *p)
{
	if (ps->ended_count >= ps->options.limit) {
		metrics_add(ps->options.metrics, METRIC_PROCESSES_REFUSED, 1);
		processes_forget(ps, p);
		return;
	}
	p->next_ended = ps->ended;
	ps->ended = p;
	ps->ended_count++;
}

/* Gives P the place of the oldest of the recently ended ones. */
static void keep_recent(struct processes *ps, struct process *p)
{
	struct process **place = &ps->recent[ps->recent_at++ % RECENTLY_ENDED];
	struct process *oldest = *place;

	*place = p;
	if (!oldest)
		return;
	if (oldest->sampled)
		keep_ended(ps, oldest);
	else
		processes_forget(ps, oldest);
}

void table_end(struct processes *ps, struct process *p, uint64_t time_ns)
{
	p->ended = true;
	p->ended_ns = time_ns;
	table_shown_free(take(p->shown));
	ps->live--;
	if (ps->options.ended)
		ps->options.ended(ps->options.context, p);
	if (p->sampled)
		keep_ended(ps, p);
	else
		keep_recent(ps, p);
}

void table_supersede(struct processes *ps, struct process *p, uint64_t time_ns)
{
	p->superseded = true;
	table_end(ps, p, time_ns);
}

void table_make_current(struct processes *ps, struct process *p)
{
	/* The pid has an entry already, so this needs no memory. */
	(void)map_set_pointer(&ps->by_pid, p->pid, p);
}

void table_set_comm(struct process *p, const char *comm)
{
	size_t length = strnlen(comm, PROCESS_COMM_BYTES);

	memcpy(p->comm, comm, length);
	p->comm[length] = 0;
}

void table_set_executable(
	struct processes *ps, struct process *p, struct module *executable, const char *path)
{
	char copy[4096];

	path = table_clean_path(path, copy, sizeof(copy));
	free(p->other_path);
	p->other_path = NULL;
	if (executable && *path && strcmp(path, executable->path)) {
		p->other_path = strdup(path);
		/* No name is better than another file's. */
		if (!p->other_path)
			executable = NULL;
	}
	p->executable = executable;
	if (executable && ps->options.program)
		ps->options.program(ps->options.context, p);
}

bool process_is_settled(const struct process *p)
{
	return !p->stale && !p->shown && !p->unproven && !p->unreadable;
}

const uint32_t *process_exec_id(const struct process *p)
{
	return p->exec_known ? &p->exec_id : NULL;
}

const struct process *processes_of_pid(const struct processes *ps, uint32_t pid)
{
	return map_get_pointer(&ps->by_pid, pid);
}

struct process *processes_find(struct processes *ps, uint32_t number)
{
	return map_get_pointer(&ps->by_number, number);
}

const char *process_program_path(const struct process *p)
{
	if (p->other_path)
		return p->other_path;
	return p->executable ? p->executable->path : "";
}

size_t processes_count(const struct processes *ps)
{
	return ps->live;
}

struct process *processes_next(struct processes *ps, size_t *iterator)
{
	uint64_t pid, pointer;

	while (map_next(&ps->by_pid, iterator, &pid, &pointer)) {
		struct process *p = (struct process *)(uintptr_t)pointer;

		if (!p->ended)
			return p;
	}
	return NULL;
}

uint32_t processes_anon_module(const struct processes *ps)
{
	return ps->anon->number;
}

uint32_t process_namespace_pid(struct processes *ps, struct process *p)
{
	autoclose int pid_fd = -1;
	struct proc_stat stat;
	uint32_t number = p->pid;
	int err;

	if (p->namespace_pid || p->ended)
		return p->namespace_pid ? p->namespace_pid : p->pid;
	err = proc_open(ps->options.proc_fd, p->pid, &pid_fd);
	if (!err)
		err = proc_read_stat(pid_fd, &stat);
	if (!err && (!p->start_ticks || p->start_ticks == stat.start_ticks))
		err = proc_read_namespace_pid(pid_fd, &number);
	if (failure_is_transient(err))
		return 0;
	p->namespace_pid = number;
	return number;
}

/* A thread may be sampled shortly after the end of its process: EXIT_GRACE_NS. */
static bool is_over(const struct process *p, uint64_t before_ns)
{
	return p->ended_ns < before_ns && p->sampled_ns < before_ns;
}

static void forget_ended(struct processes *ps, uint64_t before_ns)
{
	struct process **link = &ps->ended, *p;

	for (unsigned int i = 0; i < RECENTLY_ENDED; i++) {
		if (!ps->recent[i] || !is_over(ps->recent[i], before_ns))
			continue;
		processes_forget(ps, take(ps->recent[i]));
	}
	while ((p = *link) != NULL) {
		if (!is_over(p, before_ns)) {
			link = &p->next_ended;
			continue;
		}
		*link = p->next_ended;
		processes_forget(ps, p);
		ps->ended_count--;
	}
}

/*
 * Finds processes that are gone although no exit record says so: it was lost, or the number of
 * threads was unknown. Records of their last moments may still be on the way, so such a process
 * ends when the stream has passed the time at which it was found missing.
 */
static struct process *find_gone(struct processes *ps)
{
	struct process *p, *gone = NULL;
	size_t i = 0;

	while ((p = processes_next(ps, &i))) {
		if (p->gone_ns && ps->time_ns > p->gone_ns) {
			p->next_ended = gone;
			gone = p;
		} else if (!p->gone_ns && (p->main_exited || p->stale) &&
			   table_is_gone(ps, p->pid)) {
			p->gone_ns = clock_monotonic_ns();
		}
	}
	return gone;
}

void processes_sweep(struct processes *ps, uint64_t before_ns)
{
	struct process *gone = find_gone(ps);

	while (gone) {
		struct process *p = gone;

		gone = p->next_ended;
		p->next_ended = NULL;
		table_end(ps, p, p->gone_ns);
	}
	forget_ended(ps, before_ns);
	map_trim(&ps->by_pid);
	map_trim(&ps->by_number);
}

/* ---- modules -------------------------------------------------------------------------------- */

static void mark_mappings(const struct mappings *m, uint64_t mark)
{
	for (size_t i = 0; i < mappings_count(m); i++)
		mappings_at(m, i)->module->mark = mark;
}

static void mark_modules(struct processes *ps)
{
	uint64_t number, pointer;
	size_t iterator = 0;

	ps->anon->mark = ps->vdso->mark = ps->unknown->mark = ++ps->module_mark;
	while (map_next(&ps->by_number, &iterator, &number, &pointer)) {
		const struct process *p = (const struct process *)(uintptr_t)pointer;

		if (p->executable)
			p->executable->mark = ps->module_mark;
		mark_mappings(p->mappings, ps->module_mark);
		if (p->shown)
			mark_mappings(p->shown->mappings, ps->module_mark);
	}
}

struct module_sweep {
	uint64_t mark;
	modules_unused_fn *unused;
	void *context;
};

static bool is_unused(void *context, struct module *module)
{
	const struct module_sweep *sweep = context;

	return module->mark != sweep->mark && sweep->unused(sweep->context, module);
}

size_t processes_sweep_modules(struct processes *ps, modules_unused_fn *unused, void *context)
{
	struct module_sweep sweep = { .unused = unused, .context = context };

	mark_modules(ps);
	sweep.mark = ps->module_mark;
	return modules_sweep(ps->options.modules, is_unused, &sweep);
}
