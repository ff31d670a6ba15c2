/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/unwind/unwind_internal.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_RANGES = 4096, /* of one process: the rest of it goes by frame pointer */
	MAX_SEGMENTS = 64,
	MANY_RANGES = 256, /* are written anew once a turn at most */
};

/* A process as the kernel was told of it. */
struct known_process {
	uint32_t pid;
	uint32_t first_range, range_count;
	uint32_t module_turn;
	uint32_t turn; /* in which they were written */
	bool waiting; /* for the index of one of its modules */
	uint64_t generation; /* of its mappings; 0 = not written yet */
};

int unwind_create(const struct unwind_options *options, struct unwind **ret_unwind)
{
	struct unwind *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->options = *options;
	map_init(&u->processes, ABI_UNWIND_PROCESSES);
	err = space_init(&u->ranges, 0, ABI_UNWIND_RANGES);
	if (!err)
		err = pages_init(&u->pages, &u->options.target, options->metrics);
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
	pages_deinit(&u->pages);
	space_deinit(&u->ranges);
	free(u->scratch);
	free(u);
}

/* ---- ranges --------------------------------------------------------------------------------- */

bool unwind_part_of(const struct mapping *mapping, const struct index_segment *segment,
	struct unwind_part *ret_part)
{
	uint64_t begin = MAX(mapping->file_off, segment->file_off);
	uint64_t mapping_end = mapping->file_off + (mapping->end - mapping->start);
	uint64_t segment_end = segment->file_off + segment->size;
	uint64_t end = MIN(mapping_end, segment_end);

	if (mapping_end < mapping->file_off || segment_end < segment->file_off || begin >= end)
		return false;
	ret_part->start = mapping->start + (begin - mapping->file_off);
	ret_part->end = mapping->start + (end - mapping->file_off);
	ret_part->elf_addr = segment->address + (begin - segment->file_off);
	return true;
}

struct range_writer {
	struct unwind *u;
	size_t count;
	bool waiting;
	int error;
};

static void add_range(struct range_writer *w, const struct abi_unwind_range *range)
{
	struct unwind *u = w->u;
	int err;

	if (range->start >= range->end || w->error || w->count == MAX_RANGES)
		return;
	err = array_reserve(u->scratch, u->scratch_capacity, w->count + 1, MAX_RANGES);
	if (err)
		w->error = err;
	else
		u->scratch[w->count++] = *range;
}

/* Segments are ascending by address; in a mapping they need not be so by pc: a sane file's are. */
static void add_segments(
	struct range_writer *w, const struct mapping *mapping, const struct page_module *module)
{
	const struct index *index = module->index;
	uint64_t done = mapping->start;

	for (size_t i = 0; i < index_segment_count(index) && i < MAX_SEGMENTS; i++) {
		struct index_segment segment = index_segment(index, i);
		struct unwind_part part;

		if (!unwind_part_of(mapping, &segment, &part) || part.start < done)
			continue;
		done = part.end;
		add_range(w, &(struct abi_unwind_range){
				     .start = part.start,
				     .end = part.end,
				     .address = part.elf_addr -
						(module->first_page << ABI_UNWIND_PAGE_SHIFT),
				     .first_slot = module->first_slot,
				     .slot_count = (unsigned short)module->slot_count,
				     .kind = index_go(index) ? ABI_UNWIND_GO : ABI_UNWIND_TABLES,
			     });
	}
}

static void add_mapping(struct range_writer *w, const struct mapping *mapping)
{
	const struct unwind_options *options = &w->u->options;
	struct abi_unwind_range whole = { .start = mapping->start, .end = mapping->end };
	const struct page_module *module;
	const struct index *index = NULL;
	int err;

	if (mapping->module->kind != MODULE_FILE && mapping->module->kind != MODULE_VDSO)
		return;
	switch (options->module(options->context, mapping->module, &index)) {
	case UNWIND_MODULE_WAITING:
		w->waiting = true;
		whole.kind = ABI_UNWIND_WAITING;
		add_range(w, &whole);
		return;
	case UNWIND_MODULE_NONE:
		/* It may be asked for once more, and come. */
		w->waiting = true;
		add_range(w, &whole);
		return;
	case UNWIND_MODULE_READY:
		break;
	}
	err = pages_module(&w->u->pages, mapping->module->number, index, &module);
	if (err)
		add_range(w, &whole);
	else
		add_segments(w, mapping, module);
}

static void give_ranges(struct unwind *u, const struct known_process *known)
{
	if (known->range_count)
		(void)space_give(&u->ranges, known->first_range, known->range_count);
}

/* ---- processes ------------------------------------------------------------------------------ */

static void tell_full(struct unwind *u)
{
	bool full = u->full || u->paused;

	if (u->told_full == full)
		return;
	u->told_full = full;
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

static int write_ranges(struct unwind *u, uint32_t count, uint32_t *ret_first)
{
	const struct unwind_target *target = &u->options.target;
	int err;

	*ret_first = 0;
	if (!count)
		return 0;
	err = space_take(&u->ranges, count, ret_first);
	if (err)
		return err;
	err = target->write_ranges(target->context, *ret_first, u->scratch, count);
	if (err)
		(void)space_give(&u->ranges, *ret_first, count);
	return err;
}

/* Writes P's ranges anew and makes KNOWN tell of them. */
static int write_process(struct unwind *u, const struct process *p, struct known_process *known)
{
	const struct unwind_target *target = &u->options.target;
	struct range_writer w = { .u = u };
	struct abi_unwind_process entry = { .generation = p->number };
	int err;

	for (size_t i = 0; i < mappings_count(p->mappings) && !w.error; i++)
		add_mapping(&w, mappings_at(p->mappings, i));
	if (w.error)
		return w.error;
	entry.range_count = (uint32_t)w.count;
	err = write_ranges(u, entry.range_count, &entry.first_range);
	if (err)
		return err;
	err = target->set_process(target->context, p->pid, &entry);
	if (err) {
		if (entry.range_count)
			(void)space_give(&u->ranges, entry.first_range, entry.range_count);
		return err;
	}
	give_ranges(u, known);
	known->first_range = entry.first_range;
	known->range_count = entry.range_count;
	known->waiting = w.waiting;
	known->module_turn = u->module_turn;
	known->turn = u->turn;
	known->generation = mappings_generation(p->mappings);
	return 0;
}

static bool is_current(
	const struct unwind *u, const struct process *p, const struct known_process *known)
{
	/* What is given back rests: a process that maps on and on would use up all room. */
	if (known->range_count > MANY_RANGES && known->turn == u->turn)
		return true;
	if (known->waiting && known->module_turn != u->module_turn)
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

int unwind_sync(struct unwind *u, const struct process *p)
{
	struct known_process *known;
	int err;

	if (p->ended || p->kernel_thread)
		return 0;
	known = get_known(u, p);
	if (known && is_current(u, p, known))
		return 0;
	err = known ? write_process(u, p, known) : -E2BIG;
	/* -EAGAIN: there is room again after some turns. */
	if (err && err != -EAGAIN)
		metrics_add(u->options.metrics, METRIC_UNWIND_PROCESSES_REFUSED, 1);
	return err;
}

static void forget(struct unwind *u, struct known_process *known, uint64_t number)
{
	u->options.target.remove_process(u->options.target.context, known->pid);
	give_ranges(u, known);
	map_remove(&u->processes, number);
	free(known);
}

void unwind_forget(struct unwind *u, const struct process *p)
{
	struct known_process *known = map_get_pointer(&u->processes, p->number);

	if (!known)
		return;
	forget(u, known, p->number);
	set_full(u, false);
}

void unwind_forget_module(struct unwind *u, const struct module *module)
{
	pages_drop(&u->pages, module->number);
}

void unwind_modules_changed(struct unwind *u)
{
	u->module_turn++;
}

/* ---- pages ---------------------------------------------------------------------------------- */

void unwind_want(struct unwind *u, uint32_t slot)
{
	pages_want(&u->pages, slot);
}

/* Everything, so that what is in use now finds room again. */
static void forget_all(struct unwind *u)
{
	uint64_t number, known;
	size_t iterator = 0;

	while (map_next(&u->processes, &iterator, &number, &known)) {
		forget(u, (void *)(uintptr_t)known, number);
		iterator = 0;
	}
	pages_drop_all(&u->pages);
	set_full(u, false);
}

void unwind_turn(struct unwind *u)
{
	u->turn++;
	space_turn(&u->ranges);
	pages_turn(&u->pages);
	if (pages_crowded(&u->pages))
		forget_all(u);
}
