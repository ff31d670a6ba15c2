/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pages of which modules' tables the kernel holds. Each known module has a run of slots, one
 * per 64 KiB from its first to its last table; a slot says where the page is, once that has been
 * requested. The pool has a fixed size; the least recently used pages are evicted first.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/unwind/space.h"
#include "agent/sampler/unwind/target.h"
#include "base/map.h"
#include "base/metrics.h"
#include "symbolizer/index/index.h"

struct page_module {
	uint32_t number; /* the module's */
	uint32_t first_slot, slot_count; /* 0 slots = no tables */
	bool sparse; /* most of its pages have no table */
	uint64_t first_page; /* ELF address >> ABI_UNWIND_PAGE_SHIFT of its first slot */
	const struct index *index; /* borrowed */
};

struct loaded_page;

/* Pages beside one that a walk missed, to be loaded: the nearest first. */
struct page_ahead {
	uint32_t slot; /* of that page */
	uint32_t next; /* 1 = the page above it, 2 = the one below it, 3 = two above, … */
	uint32_t left; /* how many are to be loaded at most */
};

struct pages {
	const struct unwind_target *target; /* borrowed */
	struct metrics *metrics; /* borrowed */
	bool wide_rules; /* for tests: MECHANISM_PACKED_RULES is off */
	struct map modules; /* number → struct page_module */
	struct space slots;
	struct space regions[ABI_UNWIND_REGIONS]; /* in units of PAGE_UNIT_BYTES */
	struct loaded_page *loaded;
	size_t loaded_count, loaded_capacity;
	uint32_t sparse_slots; /* of all modules that are sparse */
	struct page_ahead ahead[8]; /* begun, the newest last */
	uint32_t ahead_count;
	struct map deferred; /* slot → units of a page that found no room since the last tick */
	uint32_t deferred_units; /* sum over these pages */
	bool slots_deferred; /* a module found no slots since the last pages_drop_all() */
	uint32_t epoch;
	uint32_t dropped_epoch; /* of the last pages_drop_all() */
	uint32_t rules_epoch;
};

int pages_init(struct pages *p, const struct unwind_target *target, struct metrics *metrics);
void pages_deinit(struct pages *p);
/* The module, with slots from its first call on. -EAGAIN if too few are free now, -ENOMEM. */
int pages_module(struct pages *p, uint32_t number, const struct index *index,
	const struct page_module **ret_module);
/*
 * Loads the page of SLOT, or marks the slot if there is none. Begins to load the module's other
 * pages as well, while half of the pool is free. If there is no room before the next tick the page
 * stays absent: user space finishes the walks that need it, and the page is loaded when it is
 * requested again.
 */
void pages_want(struct pages *p, uint32_t slot);
/* Loads some more of the pages that were begun. Call it each time the rings have been read. */
void pages_load_ahead(struct pages *p);
/*
 * Call it about once a second. Frees the room of pages evicted two ticks ago, and evicts pages
 * until an eighth of the pool is free plus (up to a quarter of the pool) what found no room in this
 * tick.
 */
void pages_tick(struct pages *p);
/* Whether slots are running out, or have run out. */
bool pages_crowded(const struct pages *p);
/* Replaces a module's index by another one of the same file. */
void pages_replace(struct pages *p, uint32_t number, const struct index *index);
/* Forgets a module. Its slots can be reused after two ticks. */
void pages_drop(struct pages *p, uint32_t number);
void pages_drop_all(struct pages *p);
