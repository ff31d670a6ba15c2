/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/unwind/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/unwind/wide_page.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/index/unwind.h"

enum {
	UNIT_BYTES = 64,
	REGION_UNITS = ABI_UNWIND_REGION_BYTES / UNIT_BYTES,
	MAX_MODULES = 65536,
	POOL_UNITS = ABI_UNWIND_REGIONS * REGION_UNITS,
	SPARE_PART = 8, /* 1/8 of the units is kept free */
	AHEAD_PART = 2, /* pages that nobody asked for leave this part of the units free, */
	MAX_AHEAD = 256, /* and are at most as many for each page that a walk missed: */
	AHEAD_NEAR = 4, /* so many at once, */
	AHEAD_STEP = 256, /* the others later, so many in each call of pages_load_ahead() */
	MAX_DEFERRED_PART = 4, /* plus at most 1/4 for pages that found no room */
	/* A module with more slots than this has a table on one page in four at least. */
	SPARSE_SLOTS = 64,
	SPARSE_FACTOR = 4,
	SPARSE_PART = 4, /* modules with fewer tables share 1/4 of the slots */
	DEFERRED_TICKS = 60, /* least ticks between dropping all for modules without slots */
	MAX_DEFERRED = 4096, /* slots remembered until the next tick */
	/*
	 * Ticks between two flushes of cached rules. Walks by cached rules do not mark a page as
	 * used, so its last use may look that much older.
	 */
	RULES_TICKS = 16,
};

struct loaded_page {
	uint32_t slot, where, units;
	uint32_t used; /* for sorting */
};

int pages_init(struct pages *p, const struct unwind_target *target, struct metrics *metrics)
{
	int err;

	*p = (struct pages){
		.target = target, .metrics = metrics, .epoch = DEFERRED_TICKS, .rules_epoch = 1
	};
	map_init(&p->modules, MAX_MODULES);
	map_init(&p->deferred, MAX_DEFERRED);
	err = space_init(&p->slots, 0, ABI_UNWIND_SLOTS);
	for (uint32_t i = 0; i < ABI_UNWIND_REGIONS && !err; i++) {
		uint32_t reserved = i == 0 ? ABI_UNWIND_POOL_BEGIN / UNIT_BYTES : 0;

		err = space_init(&p->regions[i], reserved, REGION_UNITS - reserved);
	}
	p->target->set_epoch(p->target->context, p->epoch);
	return err;
}

void pages_deinit(struct pages *p)
{
	size_t iterator = 0;
	uint64_t number, module;

	while (map_next(&p->modules, &iterator, &number, &module))
		free((void *)(uintptr_t)module);
	map_deinit(&p->modules);
	map_deinit(&p->deferred);
	space_deinit(&p->slots);
	for (size_t i = 0; i < ABI_UNWIND_REGIONS; i++)
		space_deinit(&p->regions[i]);
	free(p->loaded);
}

/* Invalidates all rules that CPUs have cached. */
static void pages_flush_rules(struct pages *p)
{
	p->target->set_rules_epoch(p->target->context, ++p->rules_epoch);
}

/* ---- modules -------------------------------------------------------------------------------- */

/*
 * The pages from the first one with a table to the last one; none without tables. Not the pages of
 * its segments: their sizes in memory are a claim of the file that costs it nothing.
 */
static void span_of(const struct index *index, uint64_t *ret_first, uint64_t *ret_count)
{
	size_t tables = index_unwind_page_count(index);
	uint64_t first, last;

	*ret_first = *ret_count = 0;
	if (!tables)
		return;
	first = index_unwind_page_address(index, 0) >> ABI_UNWIND_PAGE_SHIFT;
	last = index_unwind_page_address(index, tables - 1) >> ABI_UNWIND_PAGE_SHIFT;
	if (first > last)
		return;
	*ret_first = first;
	*ret_count = last - first + 1;
}

/*
 * Code lies close together; a file with a table here and one far away may waste slots on purpose.
 * Or it is a large program most of which was built without tables, as Chromium is.
 */
static bool is_sparse(const struct index *index, uint64_t count)
{
	return count > SPARSE_SLOTS && count / SPARSE_FACTOR > index_unwind_page_count(index);
}

/* More code than half of the slots cover, or gaps instead of code and others have those already. */
static bool is_refused(const struct pages *p, bool sparse, uint64_t count)
{
	if (sparse)
		return count > ABI_UNWIND_SLOTS / SPARSE_PART - p->sparse_slots;
	return count > ABI_UNWIND_SLOTS / 2;
}

static void give_slots(struct pages *p, const struct page_module *module)
{
	if (!module->slot_count)
		return;
	if (module->sparse)
		p->sparse_slots -= module->slot_count;
	(void)space_give(&p->slots, module->first_slot, module->slot_count);
}

/* None for a module that is refused. */
static int take_slots(struct pages *p, struct page_module *module, uint64_t count)
{
	bool sparse = is_sparse(module->index, count);
	int err;

	if (!count)
		return 0;
	if (is_refused(p, sparse, count)) {
		metrics_add(p->metrics, METRIC_UNWIND_MODULES_REFUSED, 1);
		return 0;
	}
	err = space_take(&p->slots, (uint32_t)count, &module->first_slot);
	p->slots_deferred |= err == -EAGAIN;
	if (err)
		return err;
	module->slot_count = (uint32_t)count;
	module->sparse = sparse;
	if (sparse)
		p->sparse_slots += module->slot_count;
	memset(&p->target->slots[module->first_slot], 0, count * sizeof(p->target->slots[0]));
	return 0;
}

int pages_module(struct pages *p, uint32_t number, const struct index *index,
	const struct page_module **ret_module)
{
	struct page_module *module = map_get_pointer(&p->modules, number);
	uint64_t count;
	int err;

	if (module) {
		*ret_module = module;
		return 0;
	}
	module = calloc(1, sizeof(*module));
	if (!module)
		return -ENOMEM;
	module->number = number;
	module->index = index;
	span_of(index, &module->first_page, &count);
	err = take_slots(p, module, count);
	if (!err)
		err = map_set_pointer(&p->modules, number, module);
	if (err) {
		give_slots(p, module);
		free(module);
		metrics_add(p->metrics,
			err == -EAGAIN ? METRIC_UNWIND_MODULES_DEFERRED
				       : METRIC_UNWIND_MODULES_REFUSED,
			1);
		return err;
	}
	*ret_module = module;
	return 0;
}

static const struct page_module *pages_module_of(const struct pages *p, uint32_t slot)
{
	size_t iterator = 0;
	uint64_t number, pointer;

	while (map_next(&p->modules, &iterator, &number, &pointer)) {
		const struct page_module *module = (const void *)(uintptr_t)pointer;

		if (slot - module->first_slot < module->slot_count)
			return module;
	}
	return NULL;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void set_where(struct pages *p, uint32_t slot, uint32_t where)
{
	__atomic_store_n(&p->target->slots[slot].used, p->epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&p->target->slots[slot].where, where, __ATOMIC_RELEASE);
}

static uint32_t units_of(size_t size)
{
	return (uint32_t)((size + UNIT_BYTES - 1) / UNIT_BYTES);
}

static int take_room(struct pages *p, uint32_t units, uint32_t *ret_where)
{
	for (uint32_t i = 0; i < ABI_UNWIND_REGIONS; i++) {
		uint32_t first;

		if (space_take(&p->regions[i], units, &first))
			continue;
		*ret_where = i * ABI_UNWIND_REGION_BYTES + first * UNIT_BYTES;
		return 0;
	}
	return -EAGAIN;
}

static void give_room(struct pages *p, uint32_t where, uint32_t units)
{
	(void)space_give(&p->regions[where / ABI_UNWIND_REGION_BYTES],
		where % ABI_UNWIND_REGION_BYTES / UNIT_BYTES, units);
}

static int pages_load_page(
	struct pages *p, uint32_t slot, const struct abi_unwind_page *page, size_t size)
{
	struct loaded_page entry = { .slot = slot, .units = units_of(size) };
	int err =
		array_reserve(p->loaded, p->loaded_capacity, p->loaded_count + 1, ABI_UNWIND_SLOTS);

	if (!err)
		err = take_room(p, entry.units, &entry.where);
	if (err)
		return err;
	err = p->target->write_pool(p->target->context, entry.where, page, size);
	if (err) {
		give_room(p, entry.where, entry.units);
		return err;
	}
	p->loaded[p->loaded_count++] = entry;
	set_where(p, slot, entry.where);
	return 0;
}

static int pages_load(
	struct pages *p, uint32_t slot, const struct abi_unwind_page *page, size_t size)
{
	autofree struct abi_unwind_page *wide = NULL;

	if (p->wide_rules) {
		wide = wide_page_of(page);
		if (!wide)
			return -ENOMEM;
		page = wide;
		size = wide->size;
	}
	return size > ABI_UNWIND_REGION_BYTES ? -E2BIG : pages_load_page(p, slot, page, size);
}

static uint32_t units_left(const struct pages *p)
{
	uint32_t left = 0;

	for (size_t i = 0; i < ABI_UNWIND_REGIONS; i++)
		left += space_left(&p->regions[i]);
	return left;
}

/* Counts a page once a tick, however often it is requested. */
static void defer(struct pages *p, uint32_t slot, uint32_t units)
{
	(void)map_set(&p->deferred, slot, units);
	p->deferred_units += units;
	metrics_add(p->metrics, METRIC_UNWIND_PAGES_DEFERRED, 1);
}

/* Reads the page of SLOT of MODULE; a slot without a table is marked. */
static bool pages_read(struct pages *p, const struct page_module *module, uint32_t slot,
	const struct abi_unwind_page **ret_page, size_t *ret_size)
{
	uint64_t number = module->first_page + (slot - module->first_slot);

	if (index_unwind_page(module->index, number << ABI_UNWIND_PAGE_SHIFT, ret_page, ret_size) &&
		unwind_page_check(*ret_page, *ret_size))
		return true;
	set_where(p, slot, ABI_UNWIND_NO_TABLE);
	return false;
}

/*
 * Loads the next page of MODULE that AHEAD tells of. Returns false if there is none, or no room for
 * it.
 */
static bool load_next(struct pages *p, const struct page_module *module, struct page_ahead *ahead)
{
	const uint32_t at = ahead->slot - module->first_slot;

	while (ahead->left && ahead->next < 2 * module->slot_count) {
		/* One above, one below, two above, … */
		uint32_t i = ahead->next++, other = i & 1 ? at + (i + 1) / 2 : at - i / 2;
		uint32_t slot = module->first_slot + other;
		const struct abi_unwind_page *page;
		size_t size;

		if (other >= module->slot_count ||
			p->target->slots[slot].where != ABI_UNWIND_ABSENT)
			continue;
		if (units_left(p) < POOL_UNITS / AHEAD_PART)
			return false;
		ahead->left--;
		if (!pages_read(p, module, slot, &page, &size))
			return true;
		if (pages_load(p, slot, page, size))
			return false;
		metrics_add(p->metrics, METRIC_UNWIND_PAGES_AHEAD, 1);
		return true;
	}
	return false;
}

/*
 * Begins to load pages beside SLOT. A program that begins to run needs one after the other, and
 * each that is absent costs a walk, which is cut if its stack is deep. But while pages are loaded
 * the rings are not read, and walks that find no room in them are cut as well: so only the nearest
 * pages are loaded at once.
 */
static void begin_ahead(struct pages *p, const struct page_module *module, uint32_t slot)
{
	struct page_ahead ahead = { .slot = slot, .next = 1, .left = MAX_AHEAD };
	bool more = true;

	for (uint32_t i = 0; i < AHEAD_NEAR && more; i++)
		more = load_next(p, module, &ahead);
	/* If the list is full, the next page that is missed begins anew. */
	if (more && p->ahead_count < ARRAY_SIZE(p->ahead))
		p->ahead[p->ahead_count++] = ahead;
}

void pages_load_ahead(struct pages *p)
{
	uint32_t steps = AHEAD_STEP;

	while (p->ahead_count && steps) {
		struct page_ahead *newest = &p->ahead[p->ahead_count - 1];
		const struct page_module *module = pages_module_of(p, newest->slot);
		bool more = module != NULL;

		for (; more && steps; steps--)
			more = load_next(p, module, newest);
		if (!more)
			p->ahead_count--;
	}
}

void pages_want(struct pages *p, uint32_t slot)
{
	const struct page_module *module;
	const struct abi_unwind_page *page;
	uint64_t units;
	size_t size;
	int err;

	if (slot >= ABI_UNWIND_SLOTS || p->target->slots[slot].where != ABI_UNWIND_ABSENT)
		return;
	/* There will be no room before the next tick. */
	if (map_get(&p->deferred, slot, &units))
		return;
	module = pages_module_of(p, slot);
	if (!module)
		return;
	if (!pages_read(p, module, slot, &page, &size))
		return;
	err = pages_load(p, slot, page, size);
	if (err == -EAGAIN)
		defer(p, slot, units_of(size));
	else
		metrics_add(p->metrics,
			err ? METRIC_UNWIND_PAGES_REFUSED : METRIC_UNWIND_PAGE_LOADS, 1);
	if (!err)
		begin_ahead(p, module, slot);
}

/* ---- eviction ------------------------------------------------------------------------------- */

static int by_use(const void *left, const void *right)
{
	const struct loaded_page *a = left, *b = right;

	return (a->used < b->used) - (a->used > b->used);
}

/* Evicts the last of the loaded pages. */
static void pages_evict_last(struct pages *p)
{
	struct loaded_page *last = &p->loaded[--p->loaded_count];

	__atomic_store_n(&p->target->slots[last->slot].where, ABI_UNWIND_ABSENT, __ATOMIC_RELEASE);
	give_room(p, last->where, last->units);
}

static void make_room(struct pages *p)
{
	const uint32_t wanted =
		POOL_UNITS / SPARE_PART + MIN(p->deferred_units, POOL_UNITS / MAX_DEFERRED_PART);

	if (units_left(p) >= wanted)
		return;
	for (size_t i = 0; i < p->loaded_count; i++)
		p->loaded[i].used = __atomic_load_n(
			&p->target->slots[p->loaded[i].slot].used, __ATOMIC_RELAXED);
	qsort(p->loaded, p->loaded_count, sizeof(p->loaded[0]), by_use);
	while (p->loaded_count && units_left(p) < wanted) {
		pages_evict_last(p);
		metrics_add(p->metrics, METRIC_UNWIND_EVICTIONS, 1);
	}
}

void pages_tick(struct pages *p)
{
	space_tick(&p->slots);
	for (size_t i = 0; i < ABI_UNWIND_REGIONS; i++)
		space_tick(&p->regions[i]);
	make_room(p);
	map_clear(&p->deferred);
	p->deferred_units = 0;
	p->target->set_epoch(p->target->context, ++p->epoch);
	if (p->epoch % RULES_TICKS == 0)
		pages_flush_rules(p);
}

bool pages_crowded(const struct pages *p)
{
	if (p->slots_deferred && p->epoch - p->dropped_epoch >= DEFERRED_TICKS)
		return true;
	return space_left(&p->slots) < ABI_UNWIND_SLOTS / SPARE_PART;
}

static void drop_pages(struct pages *p, const struct page_module *module)
{
	size_t i = 0;

	while (i < p->loaded_count) {
		if (p->loaded[i].slot - module->first_slot >= module->slot_count) {
			i++;
			continue;
		}
		struct loaded_page dropped = p->loaded[i];

		p->loaded[i] = p->loaded[p->loaded_count - 1];
		p->loaded[p->loaded_count - 1] = dropped;
		pages_evict_last(p);
	}
	for (uint32_t slot = 0; slot < module->slot_count; slot++)
		p->target->slots[module->first_slot + slot].where = ABI_UNWIND_NO_TABLE;
}

void pages_replace(struct pages *p, uint32_t number, const struct index *index)
{
	struct page_module *module = map_get_pointer(&p->modules, number);

	if (module)
		module->index = index;
}

void pages_drop(struct pages *p, uint32_t number)
{
	struct page_module *module = map_get_pointer(&p->modules, number);

	if (!module)
		return;
	drop_pages(p, module);
	if (module->slot_count)
		pages_flush_rules(p);
	give_slots(p, module);
	map_remove(&p->modules, number);
	free(module);
}

void pages_drop_all(struct pages *p)
{
	uint64_t number, module;
	size_t iterator = 0;

	while (map_next(&p->modules, &iterator, &number, &module)) {
		pages_drop(p, (uint32_t)number);
		iterator = 0;
	}
	p->slots_deferred = false;
	p->dropped_epoch = p->epoch;
}
