/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/process_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/direct_build_ids.h"

static void on_program(void *context, struct process *p)
{
	struct fixture *f = context;

	assert_non_null(p->executable);
	f->programs++;
	f->last_program = p->number;
}

static void on_ended(void *context, struct process *p)
{
	struct fixture *f = context;

	assert_true(p->ended);
	f->ended++;
	f->last_ended_superseded = p->superseded;
}

static void on_mapped(void *context, struct process *p, const struct mapping *mapping)
{
	struct fixture *f = context;

	f->mapped++;
	f->last_mapper = p->number;
	f->last_mapped = *mapping;
}

static void on_forked(void *context, struct process *parent, struct process *child)
{
	struct fixture *f = context;

	assert_ptr_equal(parent->executable, child->executable);
	f->forked++;
	f->last_parent = parent->number;
	f->last_child = child->number;
}

int process_set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct processes_options options = { .limit = LIMIT,
		.program = on_program,
		.ended = on_ended,
		.mapped = on_mapped,
		.forked = on_forked,
		.context = f };

	fake_proc_init(&f->proc);
	fake_proc_elf(&f->proc, "program", 1, &f->program);
	fake_proc_elf(&f->proc, "other", 2, &f->other);
	fake_proc_elf(&f->proc, "libc", 3, &f->libc);
	fake_proc_elf(&f->proc, "plain", 0, &f->plain);
	if (modules_create(64, &f->modules))
		return -1;
	options.proc_fd = f->proc.fd;
	options.modules = f->modules;
	options.build_ids = &direct_build_ids;
	options.metrics = &f->metrics;
	*state = f;
	return processes_create(&options, &f->ps);
}

int process_tear_down(void **state)
{
	struct fixture *f = *state;

	processes_destroy(f->ps);
	modules_destroy(f->modules);
	fake_proc_deinit(&f->proc);
	free(f);
	return 0;
}

/* ---- records ---- */

void map(struct fixture *f, uint64_t time_ns, uint32_t pid, uint64_t start,
	const struct fake_file *file)
{
	const struct processes_mmap event = { .time_ns = time_ns,
		.pid = pid,
		.start = start,
		.length = 0x1000,
		.file_off = 0x1000,
		.build_id = file->build_id,
		.device = file->device,
		.inode = file->inode,
		.path = file->path };

	processes_mmap(f->ps, &event);
}

void map_name(struct fixture *f, uint64_t time_ns, uint32_t pid, uint64_t start, const char *name)
{
	const struct processes_mmap event = {
		.time_ns = time_ns, .pid = pid, .start = start, .length = 0x1000, .path = name
	};

	processes_mmap(f->ps, &event);
}

void exec(struct fixture *f, uint64_t time_ns, uint32_t pid, const struct fake_file *file)
{
	processes_comm(f->ps, time_ns, pid, pid, "program", true);
	map(f, time_ns + 1, pid, 0x400000, file);
	map(f, time_ns + 2, pid, 0x7f0000000000, &f->libc);
	map_name(f, time_ns + 3, pid, 0x7fff00000000, "[vdso]");
}

void forks(struct fixture *f, uint64_t time_ns, uint32_t parent, uint32_t child)
{
	processes_fork(f->ps, time_ns, child, child, parent, parent);
}

void new_thread(struct fixture *f, uint64_t time_ns, uint32_t pid, uint32_t tid)
{
	processes_fork(f->ps, time_ns, pid, tid, pid, pid);
}

struct process *sampled_as(struct fixture *f, uint32_t pid, uint64_t time_ns, uint32_t exec_id)
{
	const struct processes_sample sample = {
		.pid = pid, .time_ns = time_ns, .exec_id = exec_id
	};

	return processes_get(f->ps, &sample);
}

struct process *sampled(struct fixture *f, uint32_t pid, uint64_t time_ns)
{
	const struct process *p = live(f, pid);

	return sampled_as(f, pid, time_ns, p ? p->exec_id : 0);
}

struct process *live(struct fixture *f, uint32_t pid)
{
	struct process *p;
	size_t i = 0;

	while ((p = processes_next(f->ps, &i))) {
		if (p->pid == pid)
			return p;
	}
	return NULL;
}

const struct module *module_at(const struct process *p, uint64_t pc)
{
	const struct mapping *mapping = mappings_find(p->mappings, pc);

	return mapping ? mapping->module : NULL;
}

uint64_t count(struct fixture *f, enum metric metric)
{
	return metrics_get(&f->metrics, metric);
}

/* ---- /proc ---- */

void show(struct fixture *f, uint32_t pid, const struct fake_file *file, struct fake_process how)
{
	char maps[2 * PATH_MAX], *at = maps;

	fake_maps_line(at, PATH_MAX, 0x400000, 0x401000, 0x1000, file);
	at += strlen(at);
	fake_maps_line(at, PATH_MAX, 0x7f0000000000, 0x7f0000001000, 0x1000, &f->libc);
	how.maps = maps;
	how.exe = file->path;
	if (!how.comm)
		how.comm = "program";
	fake_proc_process(&f->proc, pid, &how);
	fake_proc_map_file(&f->proc, pid, 0x400000, 0x401000, file->path);
	fake_proc_map_file(&f->proc, pid, 0x7f0000000000, 0x7f0000001000, f->libc.path);
}
