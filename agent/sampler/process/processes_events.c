/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's side-band records. They come in time order, but a process that was read from /proc
 * may be ahead of them: a record from before its synced_ns is known already and must not undo what
 * came after it.
 *
 * When does a process end? The kernel reports each thread's exit, not the process's, and the main
 * thread may exit first. So threads are counted, from the fork or exec in the stream, or from /proc
 * if it showed only one. If the number is uncertain, the end is found by looking for the pid
 * (processes_sweep).
 */
#include <errno.h>
#include <string.h>

#include "agent/sampler/process/proc_reader.h"
#include "agent/sampler/process/table.h"
#include "base/cleanup.h"

/* How soon a full table of mappings is read again: it may be full of unmapped ones. */
static const uint64_t refill_interval_ns = UINT64_C(10) * 1000 * 1000 * 1000;

/* The live generation of PID for which a record of TIME_NS is news, or NULL. */
static struct process *concerned(struct processes *ps, uint32_t pid, uint64_t time_ns)
{
	struct process *p;

	if (time_ns > ps->time_ns)
		ps->time_ns = time_ns;
	table_catch_up(ps, pid, time_ns, NULL);
	p = table_live(ps, pid);
	return p && p->synced_ns < time_ns ? p : NULL;
}

/* Reading /proc again seldom helps over the limit, but may after a lack of memory. */
static void refuse_mapping(struct processes *ps, struct process *p, uint64_t time_ns, int error)
{
	metrics_add(ps->options.metrics, METRIC_MAPPINGS_REFUSED, 1);
	if (error == -ENOMEM || time_ns - MAX(p->synced_ns, p->start_ns) > refill_interval_ns)
		p->stale = true;
}

/*
 * Checks a file that is new, or whose state the record does not show, if the process still exists.
 * What is cached of other files must be checked again at its next use.
 */
static struct module *look_at_file(struct processes *ps, uint32_t pid,
	const struct proc_mapping *mapping, const struct build_id *build_id, bool program)
{
	autoclose int pid_fd = -1;
	struct module_id id;

	if (file_ids_known(ps->files, mapping, build_id, &id))
		return table_module(ps, -1, mapping, build_id, program);
	file_ids_renew(ps->files);
	if (mapping->inode != 0 && proc_open(ps->options.proc_fd, pid, &pid_fd))
		pid_fd = -1;
	return table_module(ps, pid_fd, mapping, build_id, program);
}

void processes_mmap(struct processes *ps, const struct processes_mmap *event)
{
	struct process *p = concerned(ps, event->pid, event->time_ns);
	const struct proc_mapping mapping = { .start = event->start,
		.end = event->start + event->length,
		.file_off = event->file_off,
		.device = event->device,
		.inode = event->inode,
		.generation = event->generation,
		.executable = true,
		.path = event->path };
	uint64_t shortages = ps->module_shortages;
	struct module *module;
	bool program;
	int err;

	if (!p || mapping.end <= mapping.start)
		return;
	/* The kernel maps the program before its interpreter (binfmt_elf.c). */
	program = p->by_exec && !p->executable;
	module = look_at_file(ps, event->pid, &mapping, &event->build_id, program);
	/* The file's inode was lost on the way: /proc may show it if it is read in time. */
	if (event->build_id.size && event->inode == 0)
		p->stale = true;
	/* Memory was short: the module is `unknown` until /proc is read. */
	if (ps->module_shortages != shortages)
		p->stale = true;
	err = table_add_mapping(&p->mappings, &mapping, module);
	if (err)
		refuse_mapping(ps, p, event->time_ns, err);
	if (program && module->kind == MODULE_FILE)
		table_set_executable(ps, p, module, event->path);
	else if (program && module == ps->unknown)
		p->by_exec = false; /* that was the program; the next file is not */
	if (!err && ps->options.mapped)
		ps->options.mapped(
			ps->options.context, p, mappings_find(p->mappings, event->start));
}

static void exec(struct processes *ps, uint64_t time_ns, uint32_t pid, const char *comm)
{
	struct process *old = table_live(ps, pid), *p;
	const struct process before = old ? *old : (struct process){ 0 };
	struct cgroup_paths *cgroups = cgroup_paths_ref(before.cgroups);

	if (old)
		table_supersede(ps, old, time_ns);
	p = table_begin(ps, pid, time_ns, NULL);
	if (!p) {
		cgroup_paths_unref(cgroups);
		return;
	}
	p->by_exec = true;
	p->replaced = before.number;
	p->exec_known = before.exec_known && !before.stale && !before.shown;
	p->exec_id = before.exec_id + 1;
	p->threads = 1; /* exec ends all the others */
	p->forked_ns = before.forked_ns;
	p->start_ticks = before.start_ticks;
	memcpy(p->container_id, before.container_id, sizeof(p->container_id));
	memcpy(p->pod_uid, before.pod_uid, sizeof(p->pod_uid));
	table_set_cgroups(p, cgroups);
	table_set_comm(p, comm);
}

void processes_comm(struct processes *ps, uint64_t time_ns, uint32_t pid, uint32_t tid,
	const char *comm, bool exec_seen)
{
	struct process *p = concerned(ps, pid, time_ns);

	if (pid == 0 || pid > INT32_MAX)
		return;
	if (exec_seen && (p || !table_live(ps, pid)))
		exec(ps, time_ns, pid, comm);
	else if (p && pid == tid)
		table_set_comm(p, comm);
}

/*
 * Whether what is known of PARENT was true when it forked at TIME_NS. If /proc was read after that,
 * it may show a program that the parent executed in between.
 */
static bool knew_at(const struct process *parent, uint64_t time_ns)
{
	if (parent->synced_ns < time_ns)
		return true;
	return parent->start_ns != 0 && parent->start_ns <= time_ns;
}

static struct process *find_parent(struct processes *ps, uint32_t pid, uint64_t time_ns)
{
	struct process *parent;

	if (!pid)
		return NULL; /* not in our namespace */
	table_catch_up(ps, pid, time_ns, NULL);
	parent = table_live(ps, pid);
	return parent && knew_at(parent, time_ns) ? parent : NULL;
}

/*
 * A child of an unknown parent is not begun here: it is read from /proc at its first sample, and
 * its exec, if there is one, begins a complete new generation.
 */
static void begin_child(struct processes *ps, uint64_t time_ns, uint32_t pid, uint32_t parent_pid)
{
	struct process *parent = find_parent(ps, parent_pid, time_ns), *child;

	if (!parent)
		return;
	child = table_begin(ps, pid, time_ns, parent->mappings);
	if (!child)
		return;
	child->forked_ns = time_ns;
	child->threads = 1;
	child->kernel_thread = parent->kernel_thread;
	/* What is uncertain of the parent is uncertain of the child. */
	child->stale = !process_is_settled(parent);
	child->exec_known = parent->exec_known;
	child->exec_id = parent->exec_id;
	memcpy(child->comm, parent->comm, sizeof(child->comm));
	memcpy(child->container_id, parent->container_id, sizeof(child->container_id));
	memcpy(child->pod_uid, parent->pod_uid, sizeof(child->pod_uid));
	table_set_cgroups(child, cgroup_paths_ref(parent->cgroups));
	table_set_executable(ps, child, parent->executable, process_program_path(parent));
	if (ps->options.forked)
		ps->options.forked(ps->options.context, parent, child);
}

void processes_fork(struct processes *ps, uint64_t time_ns, uint32_t pid, uint32_t tid,
	uint32_t parent_pid, uint32_t parent_tid)
{
	struct process *p = concerned(ps, pid, time_ns);

	(void)tid;
	(void)parent_tid;
	if (pid == 0 || pid > INT32_MAX)
		return;
	if (pid == parent_pid) {
		if (p && p->threads)
			p->threads++;
		return;
	}
	if (!p && table_live(ps, pid))
		return; /* /proc has shown it already */
	if (p)
		table_supersede(ps, p, time_ns); /* its exit was lost and the pid is reused */
	begin_child(ps, time_ns, pid, parent_pid);
}

void processes_exit(struct processes *ps, uint64_t time_ns, uint32_t pid, uint32_t tid)
{
	struct process *p = concerned(ps, pid, time_ns);

	if (!p)
		return;
	if (pid == tid)
		p->main_exited = true;
	if (p->threads == 0 || --p->threads > 0)
		return;
	/* A count of 0 while the main thread lives was wrong, and stays 0 (unknown). */
	if (p->main_exited)
		table_end(ps, p, time_ns);
}

/* Whether /proc showed P after the records were lost. P's mappings are reduced to those shown. */
static bool was_shown_since(struct process *p, uint64_t until_ns)
{
	return p->shown && p->shown->time_ns >= until_ns && !table_doubt(p, p->shown);
}

void processes_lost(struct processes *ps, uint64_t time_ns, uint64_t until_ns)
{
	uint64_t pid, pointer;
	size_t i = 0;

	if (time_ns > ps->time_ns)
		ps->time_ns = time_ns;
	table_search_begin(ps);
	while (map_next(&ps->by_pid, &i, &pid, &pointer)) {
		struct process *p = (struct process *)(uintptr_t)pointer;

		if (p->ended)
			p->pid_lost = true;
		if (p->ended || p->synced_ns >= until_ns)
			continue;
		p->threads = 0;
		if (was_shown_since(p, until_ns))
			continue;
		table_shown_free(take(p->shown));
		p->stale = true;
	}
}
