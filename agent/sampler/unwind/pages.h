/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pages of which modules' tables the kernel holds. Each module that is known has a run of
 * slots, one for 64 KiB of its code; a slot says where the page is, once it has been wanted. The
 * bytes are bounded; the pages that were not used for the longest time go first.
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
	uint32_t first_slot, slot_count; /* 0 slots: no tables */
	uint64_t first_page; /* ELF address >> ABI_UNWIND_PAGE_SHIFT of its first slot */
	const struct index *index; /* borrowed */
};

struct loaded_page;

struct pages {
	const struct unwind_target *target; /* borrowed */
	struct metrics *metrics; /* borrowed */
	struct map modules; /* number → struct page_module */
	struct space slots;
	struct space regions[ABI_UNWIND_REGIONS]; /* in units of PAGE_UNIT_BYTES */
	struct loaded_page *loaded;
	size_t loaded_count, loaded_capacity;
	struct map deferred; /* slots whose pages found no room since the last turn */
	uint32_t deferred_units; /* of those pages together */
	bool slots_deferred; /* a module found no slots since the last pages_drop_all() */
	uint32_t epoch;
	uint32_t dropped_epoch; /* of the last pages_drop_all() */
	uint32_t rules_turn;
};

int pages_init(struct pages *p, const struct unwind_target *target, struct metrics *metrics);
void pages_deinit(struct pages *p);
/* The module's slots, made at the first call. -EAGAIN: none are left now, -ENOMEM. */
int pages_module(struct pages *p, uint32_t number, const struct index *index,
	const struct page_module **ret_module);
/*
 * The page in SLOT is wanted: loads it, or notes that there is none. Where there is no room before
 * the next turn it stays absent, so that the walks that meet it go on in user space, and is loaded
 * when it is wanted again.
 */
void pages_want(struct pages *p, uint32_t slot);
/*
 * To be called about once a second: what was let go may be used anew, and pages are let go until
 * an eighth of the room is free, and as much again as found no room since the last call.
 */
void pages_turn(struct pages *p);
/* Slots are running out, or have. */
bool pages_crowded(const struct pages *p);
/* A module's index gives way to one of the same file. */
void pages_replace(struct pages *p, uint32_t number, const struct index *index);
/* Forgets a module: its slots may be another's after two turns. */
void pages_drop(struct pages *p, uint32_t number);
void pages_drop_all(struct pages *p);
