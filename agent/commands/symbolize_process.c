/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolizes addresses of a running process. Its mappings are read again for an address outside all
 * of them, and every REFRESH_NS, since it may load and unload libraries between two addresses.
 * After its end the last known mappings stay in use.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/symbolize.h"
#include "agent/sampler/files/build_ids.h"
#include "agent/sampler/files/file_helper.h"
#include "agent/sampler/process/open_file.h"
#include "agent/sampler/process/proc_reader.h"
#include "agent/sampler/process/processes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/foreign.h"
#include "base/map.h"
#include "symbolizer/kallsyms/kallsyms.h"
#include "symbolizer/perf_map/perf_map.h"
#include "symbolizer/vdso.h"

enum { MAX_MODULES = 1 << 16 };

/* Longest age of the mappings and of the perf map's descriptor. */
static const uint64_t REFRESH_NS = 100000000;

struct symbolize_process {
	uint32_t pid;
	bool awaited;
	int proc_fd;
	int pid_fd; /* /proc/PID, bound to this process even if its pid is reused */
	struct symbolize_indexes *indexes;
	struct metrics metrics; /* counters of the process table; not read */
	struct file_helper file_helper;
	struct build_ids build_ids;
	struct modules *modules;
	struct map module_indexes; /* module number → index; NULL = none */
	struct processes *processes;
	struct process *process; /* the generation that was read last */
	uint64_t read_ns; /* CLOCK_MONOTONIC, of the last read */
	uint32_t perf_map_number; /* generation whose perf map is open */
	int perf_map_fd;
	uint64_t perf_map_ns; /* CLOCK_MONOTONIC, of the last attempt to open it */
	struct perf_map *perf_map;
	struct symbolize_kernel kernel;
	bool raw, kernel_tried;
};

DEFINE_AUTO(symbolize_process);

/* Keeps the last mappings if the process has ended. */
static void symbolize_process_read_mappings(struct symbolize_process *p)
{
	struct process *live;
	struct proc_stat stat;
	size_t iterator = 0;

	p->read_ns = clock_monotonic_ns();
	if (proc_read_stat(p->pid_fd, &stat) || processes_scan(p->processes, &p->pid, 1))
		return;
	live = processes_next(p->processes, &iterator);
	if (live)
		p->process = live;
}

static int symbolize_process_create_tables(struct symbolize_process *p)
{
	int err;

	p->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->proc_fd < 0)
		return -errno;
	err = modules_create(MAX_MODULES, &p->modules);
	if (!err)
		err = proc_open(p->proc_fd, p->pid, &p->pid_fd);
	if (err)
		return err;
	return processes_create(
		&(struct processes_options){
			.proc_fd = p->proc_fd,
			.modules = p->modules,
			.build_ids = &p->build_ids.reader,
			.metrics = &p->metrics,
			.limit = 1,
		},
		&p->processes);
}

static void say_why_not(uint32_t pid, const struct process *process, int err)
{
	if (err && err != -ESRCH)
		fprintf(stderr, "fathom symbolize: cannot read /proc: %s\n", strerror(-err));
	else if (!process)
		fprintf(stderr, "fathom symbolize: there is no process %u\n", pid);
	else
		fprintf(stderr,
			"fathom symbolize: cannot read the mappings of process %u: run as root or "
			"as its user\n",
			pid);
}

int symbolize_process_create(uint32_t pid, const struct symbolize_process_options *options,
	struct symbolize_process **ret_process)
{
	autocall(auto_symbolize_process_destroy) struct symbolize_process *p =
		calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->pid = pid;
	p->awaited = options->awaited;
	p->raw = options->raw;
	p->indexes = options->indexes;
	build_ids_init(&p->build_ids, &p->metrics);
	p->proc_fd = p->pid_fd = p->perf_map_fd = -1;
	map_init(&p->module_indexes, MAX_MODULES);
	err = file_helper_start(&p->file_helper, &p->metrics);
	if (!err)
		err = symbolize_process_create_tables(p);
	if (!err)
		symbolize_process_read_mappings(p);
	if (err || !p->process || p->process->unreadable) {
		say_why_not(pid, p->process, err);
		return err ? err : -ESRCH;
	}
	*ret_process = take(p);
	return 0;
}

static void destroy_indexes(struct map *indexes)
{
	uint64_t number, index;
	size_t iterator = 0;

	while (map_next(indexes, &iterator, &number, &index))
		index_destroy((struct index *)(uintptr_t)index);
	map_deinit(indexes);
}

void symbolize_process_destroy(struct symbolize_process *p)
{
	if (!p)
		return;
	processes_destroy(p->processes);
	build_ids_deinit(&p->build_ids);
	file_helper_stop(&p->file_helper);
	destroy_indexes(&p->module_indexes);
	modules_destroy(p->modules);
	perf_map_destroy(p->perf_map);
	symbolize_kernel_close(&p->kernel);
	if (p->perf_map_fd >= 0)
		close(p->perf_map_fd);
	if (p->pid_fd >= 0)
		close(p->pid_fd);
	if (p->proc_fd >= 0)
		close(p->proc_fd);
	free(p);
}

/* ---- one address ---------------------------------------------------------------------------- */

static void set_only_frame(struct symbolize_answer *answer, const char *name)
{
	answer->count = 1;
	answer->frames[0] = (struct index_frame){ .name = name, .linkage = name, .file = "" };
}

static void look_up_kernel(struct symbolize_process *p, uint64_t address, const char *image,
	struct symbolize_answer *answer)
{
	if (!p->kernel_tried && !symbolize_kernel_open(p->raw, &p->kernel))
		symbolize_kernel_add_lines(&p->kernel, p->indexes);
	p->kernel_tried = true;
	if (p->kernel.kallsyms)
		symbolize_kernel(&p->kernel, address, image, answer);
}

static int open_module(const struct symbolize_process *p, const struct mapping *mapping,
	struct module_id *ret_id, int *ret_fd)
{
	const struct module_opener opener = { .proc_fd = p->proc_fd,
		.build_ids = &p->build_ids.reader };
	const struct module *module = mapping->module;
	int err;

	if (module->kind == MODULE_VDSO)
		return vdso_open(ret_fd, ret_id);
	err = module_open(&opener, p->pid, mapping, ret_id, ret_fd);
	if (err)
		fprintf(stderr, "fathom symbolize: cannot open %s as it is mapped: %s\n",
			module->path, strerror(-err));
	return err;
}

/* Tries each module once, so that an error is printed once. Returns NULL if there is no index. */
static const struct index *index_of(struct symbolize_process *p, const struct mapping *mapping)
{
	const struct module *module = mapping->module;
	autoclose int fd = -1, root_fd = -1;
	struct index *index = NULL;
	struct module_id id;
	uint64_t known;

	if (map_get(&p->module_indexes, module->number, &known))
		return (const struct index *)(uintptr_t)known;
	if (map_set_pointer(&p->module_indexes, module->number, NULL))
		return NULL;
	if (open_module(p, mapping, &id, &fd))
		return NULL;
	if (foreign_open(
		    &(struct foreign_path){
			    .place = FOREIGN_DIRECTORY, .dir_fd = p->pid_fd, .name = "root" },
		    &root_fd))
		root_fd = -1;
	if (symbolize_index(p->indexes, &id,
		    &(struct symbolize_file){
			    .path = module->path ? module->path : "",
			    .elf_fd = fd,
			    .root_fd = root_fd,
		    },
		    &index))
		return NULL;
	if (map_set_pointer(&p->module_indexes, module->number, index))
		index_destroy(take(index));
	return index;
}

static void look_up_file(struct symbolize_process *p, const struct mapping *mapping, uint64_t pc,
	struct symbolize_answer *answer)
{
	const struct index *index = index_of(p, mapping);
	uint64_t elf_addr;
	size_t segment;

	if (mapping->module->kind == MODULE_VDSO)
		answer->module = "[vdso]";
	else if (mapping->module->path)
		answer->module = mapping->module->path;
	if (index && index_address(index, mapping_file_off(mapping, pc), &elf_addr, &segment))
		answer->count = index_lookup(index, elf_addr, answer->frames, INDEX_MAX_FRAMES);
}

/* Reopens the perf map by name: a JIT may replace the file. */
static void open_newest_perf_map(struct symbolize_process *p)
{
	uint32_t namespace_pid = process_namespace_pid(p->processes, p->process);
	int fd;

	p->perf_map_ns = clock_monotonic_ns();
	if (!namespace_pid || open_perf_map(p->proc_fd, p->pid, namespace_pid, &fd))
		return;
	if (p->perf_map_fd >= 0)
		close(p->perf_map_fd);
	p->perf_map_fd = fd;
}

static struct perf_map *updated_perf_map(struct symbolize_process *p)
{
	if (p->perf_map_number != p->process->number) {
		perf_map_destroy(take(p->perf_map));
		if (p->perf_map_fd >= 0)
			close(take_fd(&p->perf_map_fd));
	}
	p->perf_map_number = p->process->number;
	if (p->perf_map_fd < 0 || clock_monotonic_ns() - p->perf_map_ns > REFRESH_NS)
		open_newest_perf_map(p);
	if (p->perf_map_fd < 0 || (!p->perf_map && perf_map_create(&p->perf_map)))
		return NULL;
	/* After a failure the entries read before stay valid. */
	(void)perf_map_update(p->perf_map, p->perf_map_fd);
	return p->perf_map;
}

static void look_up_anon(struct symbolize_process *p, uint64_t pc, struct symbolize_answer *answer)
{
	const struct perf_map *map = updated_perf_map(p);
	const char *name;
	uint64_t start;

	answer->module = "[anon]";
	if (!map || !perf_map_lookup(map, pc, &name, &start))
		return;
	answer->module = "[jit]";
	set_only_frame(answer, name);
}

static const struct mapping *mapping_at(struct symbolize_process *p, uint64_t pc)
{
	bool old = clock_monotonic_ns() - p->read_ns > REFRESH_NS;
	const struct mapping *mapping;

	if (old)
		symbolize_process_read_mappings(p);
	mapping = mappings_find(p->process->mappings, pc);
	if (mapping || old || !p->awaited)
		return mapping;
	symbolize_process_read_mappings(p);
	return mappings_find(p->process->mappings, pc);
}

void symbolize_process_address(struct symbolize_process *p, uint64_t pc, const char *image,
	struct symbolize_answer *ret_answer)
{
	const struct mapping *mapping;

	ret_answer->module = "";
	ret_answer->name_module = false;
	ret_answer->count = 0;
	if (image || symbolize_is_kernel(pc)) {
		look_up_kernel(p, pc, image, ret_answer);
		return;
	}
	mapping = mapping_at(p, pc);
	if (!mapping)
		return;
	switch (mapping->module->kind) {
	case MODULE_FILE:
	case MODULE_VDSO:
		look_up_file(p, mapping, pc, ret_answer);
		break;
	case MODULE_ANON:
		look_up_anon(p, pc, ret_answer);
		break;
	case MODULE_KERNEL: /* no process maps it */
	case MODULE_SPECIAL:
		ret_answer->module = mapping->module->path ? mapping->module->path : "";
		break;
	}
}
