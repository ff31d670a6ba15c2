/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/unwind/ranges.h"

#include <errno.h>

#include "agent/sampler/unwind/unwind_internal.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_RANGES = 4096, /* per process; code outside them is unwound by frame pointer */
	MAX_SEGMENTS = 64,
};

void ranges_begin(struct ranges *r, struct unwind *u)
{
	*r = (struct ranges){ .unwind = u };
}

bool ranges_part_of(const struct mapping *mapping, const struct index_segment *segment,
	struct ranges_part *ret_part)
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

static void ranges_append(struct ranges *r, const struct abi_unwind_range *range)
{
	struct unwind *u = r->unwind;
	int err;

	if (range->start >= range->end || r->error || r->count == MAX_RANGES)
		return;
	err = array_reserve(u->scratch, u->scratch_capacity, r->count + 1, MAX_RANGES);
	if (err)
		r->error = err;
	else
		u->scratch[r->count++] = *range;
}

/* Segments ascend by address. By pc they do so only in a sane file; others are skipped. */
static void add_segments(
	struct ranges *r, const struct mapping *mapping, const struct page_module *module)
{
	const struct index *index = module->index;
	uint64_t done = mapping->start;

	for (size_t i = 0; i < index_segment_count(index) && i < MAX_SEGMENTS; i++) {
		struct index_segment segment = index_segment(index, i);
		struct ranges_part part;

		if (!ranges_part_of(mapping, &segment, &part) || part.start < done)
			continue;
		done = part.end;
		ranges_append(r, &(struct abi_unwind_range){
					 .start = part.start,
					 .end = part.end,
					 .address = part.elf_addr -
						    (module->first_page << ABI_UNWIND_PAGE_SHIFT),
					 .first_slot = module->first_slot,
					 .slot_count = (unsigned short)module->slot_count,
					 .kind = index_keeps_fp(index) ? ABI_UNWIND_KEEPS_FP
								       : ABI_UNWIND_TABLES,
				 });
	}
}

static void ranges_add_code(struct ranges *r, const struct mapping *mapping)
{
	const struct unwind_options *options = &r->unwind->options;
	struct abi_unwind_range whole = { .start = mapping->start, .end = mapping->end };
	const struct page_module *module;
	const struct index *index = NULL;
	int err;

	switch (options->module(options->context, mapping->module, &index)) {
	case UNWIND_MODULE_WAITING:
		r->waiting = true;
		whole.kind = ABI_UNWIND_WAITING;
		ranges_append(r, &whole);
		return;
	case UNWIND_MODULE_NONE:
		/* It may be requested again later, and succeed. */
		r->waiting = true;
		ranges_append(r, &whole);
		return;
	case UNWIND_MODULE_READY:
		break;
	}
	err = pages_module(&r->unwind->pages, mapping->module->number, index, &module);
	/* Until there are slots, walks stop here and user space finishes them. */
	if (err == -EAGAIN)
		whole.kind = ABI_UNWIND_WAITING;
	if (err)
		ranges_append(r, &whole);
	else
		add_segments(r, mapping, module);
}

void ranges_add(struct ranges *r, const struct mapping *mapping)
{
	const enum module_kind kind = mapping->module->kind;

	if (kind == MODULE_FILE || kind == MODULE_VDSO)
		ranges_add_code(r, mapping);
	else
		ranges_append(r, &(struct abi_unwind_range){
					 .start = mapping->start,
					 .end = mapping->end,
					 .kind = ABI_UNWIND_MEMORY,
				 });
}

int ranges_write(const struct ranges *r, struct range_run *ret_run)
{
	struct unwind *u = r->unwind;
	const struct unwind_target *target = &u->options.target;
	struct range_run run = { .count = (uint32_t)r->count };
	int err = r->error;

	if (!err && run.count)
		err = space_take(&u->ranges, run.count, &run.first);
	if (err)
		return err;
	if (run.count)
		err = target->write_ranges(target->context, run.first, u->scratch, run.count);
	if (err) {
		ranges_give(u, &run);
		return err;
	}
	*ret_run = run;
	return 0;
}

void ranges_give(struct unwind *u, const struct range_run *run)
{
	if (run->count)
		(void)space_give(&u->ranges, run->first, run->count);
}
