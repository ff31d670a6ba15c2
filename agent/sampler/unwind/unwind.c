/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "agent/sampler/unwind/ranges.h"
#include "agent/sampler/unwind/unwind_internal.h"

enum {
	MANY_RANGES = 256, /* a process with more is rewritten at most once a tick */
	DEVICE_MINOR_BITS = 20,
};

/* A process as last written to the kernel. */
struct known_process {
	uint32_t pid;
	struct range_run run;
	struct abi_unwind_process entry; /* as it was written */
	uint32_t modules_epoch;
	uint32_t tick; /* in which it was written */
	bool waiting; /* the index of one of its modules is not ready */
	uint64_t generation; /* of the mappings written; 0 = none yet */
};

int unwind_create(const struct unwind_options *options, struct unwind **ret_unwind)
{
	struct unwind *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->options = *options;
	map_init(&u->processes, ABI_UNWIND_PROCESSES);
	files_init(&u->files);
	err = space_init(
		&u->ranges, 0, unwind_by_file(u) ? ABI_UNWIND_FILE_RANGES : ABI_UNWIND_RANGES);
	if (!err)
		err = pages_init(&u->pages, &u->options.target, options->metrics);
	u->pages.wide_rules = options->wide_rules;
	if (err) {
		unwind_destroy(u);
		return err;
	}
	*ret_unwind = u;
	return 0;
}

void unwind_destroy(struct unwind *u)
{
	size_t iterator = 0;
	uint64_t number, known;

	if (!u)
		return;
	while (map_next(&u->processes, &iterator, &number, &known))
		free((void *)(uintptr_t)known);
	map_deinit(&u->processes);
	files_deinit(&u->files);
	pages_deinit(&u->pages);
	space_deinit(&u->ranges);
	free(u->scratch);
	free(u);
}

/* ---- processes ------------------------------------------------------------------------------ */

static void tell_full(struct unwind *u)
{
	bool full = u->full || u->paused;

	if (u->reported_full == full)
		return;
	u->reported_full = full;
	u->options.target.set_full(u->options.target.context, full);
}

static void set_full(struct unwind *u, bool full)
{
	u->full = full;
	tell_full(u);
}

void unwind_pause(struct unwind *u, bool paused)
{
	u->paused = paused;
	tell_full(u);
}

/* Writes P's ranges again and updates KNOWN. */
static int write_process(
	struct unwind *u, const struct process *p, uint32_t exec_id, struct known_process *known)
{
	const struct unwind_target *target = &u->options.target;
	struct abi_unwind_process entry = {
		.generation = p->number,
		.exec_id = exec_id,
		.version = ++u->version,
	};
	struct range_run run;
	struct ranges r;
	int err;

	ranges_begin(&r, u);
	for (size_t i = 0; i < mappings_count(p->mappings) && !r.error; i++)
		ranges_add(&r, mappings_at(p->mappings, i));
	err = ranges_write(&r, &run);
	if (err)
		return err;
	entry.first_range = run.first;
	entry.range_count = run.count;
	err = target->set_process(target->context, p->pid, &entry);
	if (err) {
		ranges_give(u, &run);
		return err;
	}
	ranges_give(u, &known->run);
	known->run = run;
	known->entry = entry;
	known->waiting = r.waiting;
	known->modules_epoch = u->modules_epoch;
	known->tick = u->tick;
	known->generation = mappings_generation(p->mappings);
	return 0;
}

static bool is_current(const struct unwind *u, const struct process *p,
	const struct known_process *known, uint32_t exec_id)
{
	if (known->entry.exec_id != exec_id)
		return false;
	/* Freed ranges rest for two ticks: a process that keeps mapping would use up all room. */
	if (known->run.count > MANY_RANGES && known->tick == u->tick)
		return true;
	if (known->waiting && known->modules_epoch != u->modules_epoch)
		return false;
	return known->generation == mappings_generation(p->mappings);
}

static struct known_process *get_known(struct unwind *u, const struct process *p)
{
	struct known_process *known = map_get_pointer(&u->processes, p->number);
	int err;

	if (known)
		return known;
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	known->pid = p->pid;
	err = map_set_pointer(&u->processes, p->number, known);
	if (!err)
		return known;
	set_full(u, true);
	free(known);
	return NULL;
}

int unwind_sync(struct unwind *u, const struct process *p, uint32_t exec_id)
{
	struct known_process *known;
	int err;

	if (unwind_by_file(u) || p->ended || p->kernel_thread)
		return 0;
	known = get_known(u, p);
	if (known && is_current(u, p, known, exec_id))
		return 0;
	err = known ? write_process(u, p, exec_id, known) : -E2BIG;
	/* -EAGAIN: there will be room after some ticks. */
	if (err && err != -EAGAIN)
		metrics_add(u->options.metrics, METRIC_UNWIND_PROCESSES_REFUSED, 1);
	return err;
}

void unwind_settle(struct unwind *u, const struct process *p)
{
	const struct unwind_target *target = &u->options.target;
	struct known_process *known = map_get_pointer(&u->processes, p->number);

	if (!known || known->entry.settled || !known->generation ||
		known->generation != mappings_generation(p->mappings))
		return;
	known->entry.settled = 1;
	(void)target->set_process(target->context, p->pid, &known->entry);
}

static void unwind_forget_state(struct unwind *u, struct known_process *known, uint64_t number)
{
	u->options.target.remove_process(u->options.target.context, known->pid);
	ranges_give(u, &known->run);
	map_remove(&u->processes, number);
	free(known);
}

void unwind_forget(struct unwind *u, const struct process *p)
{
	struct known_process *known = map_get_pointer(&u->processes, p->number);

	if (!known)
		return;
	unwind_forget_state(u, known, p->number);
	set_full(u, false);
}

void unwind_replace_index(struct unwind *u, const struct module *module, const struct index *index)
{
	pages_replace(&u->pages, module->number, index);
}

void unwind_forget_module(struct unwind *u, const struct module *module)
{
	files_forget_module(u, module);
	pages_drop(&u->pages, module->number);
}

void unwind_modules_changed(struct unwind *u)
{
	u->modules_epoch++;
	files_modules_changed(u);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Converts the kernel's device number (include/linux/kdev_t.h) to that of /proc and stat(). */
static uint64_t device_of(uint32_t kernel_device)
{
	return makedev(kernel_device >> DEVICE_MINOR_BITS,
		kernel_device & ((1U << DEVICE_MINOR_BITS) - 1));
}

struct seen_mapping unwind_seen(const struct abi_mapping *reported)
{
	const struct abi_file *file = &reported->file;
	struct seen_mapping seen = { .start = reported->start,
		.end = reported->end,
		.file_off = reported->file_off,
		.vdso = file->inode == ABI_FILE_VDSO };

	if (seen.vdso || file->inode == ABI_FILE_NONE)
		return seen;
	seen.file = (struct file_id){ .device = device_of(file->device),
		.inode = file->inode,
		.mtime_ns = file->mtime_s * UINT64_C(1000000000) + file->mtime_ns,
		.size_bytes = file->size,
		.generation = file->generation };
	if (reported->shown.inode)
		seen.shown = (struct file_id){ .device = device_of(reported->shown.device),
			.inode = reported->shown.inode };
	return seen;
}

struct seen_mapping unwind_sighting(const struct abi_sighting *reported)
{
	return unwind_seen(&(struct abi_mapping){
		.start = reported->start,
		.end = reported->end,
		.file_off = reported->file_off,
		.file = { .inode = reported->inode, .device = reported->device },
		.shown = { .inode = reported->shown_inode, .device = reported->shown_device },
	});
}

/*
 * Whether MAPPING's module may be learned for the file in TOLD, the kernel's report. This applies
 * to all processes, so a process whose mappings are wrong in user space must not teach it.
 */
static bool unwind_is_reported(const struct mapping *mapping, const struct abi_mapping *reported)
{
	const struct seen_mapping seen = unwind_seen(reported);
	enum module_kind kind = mapping->module->kind;

	return (kind == MODULE_FILE || kind == MODULE_VDSO) && mapping_is_seen(mapping, &seen);
}

void unwind_learn(
	struct unwind *u, const struct mappings *mappings, const struct abi_unwind_rest *rest)
{
	const struct mapping *mapping;
	int err;

	if (!unwind_by_file(u) || !rest->mapping.end)
		return;
	mapping = mappings_find(mappings, rest->pc - (rest->is_return ? 1 : 0));
	if (!mapping || !unwind_is_reported(mapping, &rest->mapping))
		return;
	err = files_learn(u, &rest->mapping.file, mapping->module);
	if (err == -E2BIG) {
		files_forget_all(u);
		err = files_learn(u, &rest->mapping.file, mapping->module);
	}
	if (err && err != -EAGAIN)
		metrics_add(u->options.metrics, METRIC_UNWIND_FILES_REFUSED, 1);
}

/* ---- pages ---------------------------------------------------------------------------------- */

void unwind_want(struct unwind *u, uint32_t slot)
{
	pages_want(&u->pages, slot);
}

void unwind_load_ahead(struct unwind *u)
{
	pages_load_ahead(&u->pages);
}

/* Forgets everything, so that what is in use now finds room again. */
static void forget_all(struct unwind *u)
{
	uint64_t number, known;
	size_t iterator = 0;

	while (map_next(&u->processes, &iterator, &number, &known)) {
		unwind_forget_state(u, (void *)(uintptr_t)known, number);
		iterator = 0;
	}
	files_forget_all(u);
	pages_drop_all(&u->pages);
	set_full(u, false);
}

void unwind_tick(struct unwind *u)
{
	u->tick++;
	space_tick(&u->ranges);
	pages_tick(&u->pages);
	if (pages_crowded(&u->pages))
		forget_all(u);
}
