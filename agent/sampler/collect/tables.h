/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's copy of the unwind tables: writes into the sampler's maps. What to write, and when,
 * is the owner's. Of the pool and the ranges only the place being written is mapped, since all of
 * a mapped map counts as our own memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sampler.h"
#include "bpf/abi/unwind_maps.h"

struct tables;

struct tables_maps {
	int processes, ranges, slots, pool; /* descriptors, borrowed */
	int files; /* −1: the kernel does not find mappings by itself */
	uint32_t *epoch, *full, *files_turn, *rules_turn; /* the program's variables */
	uint32_t *left_out; /* ABI_LEFT_OUT of them, as above */
};

int tables_create(const struct tables_maps *maps, struct tables **ret_tables);
void tables_destroy(struct tables *t);
struct abi_unwind_slot *tables_slots(const struct tables *t); /* ABI_UNWIND_SLOTS of them */
/* As struct unwind_target wants them: the context is the tables. */
int tables_write_ranges(
	void *context, uint32_t first, const struct abi_unwind_range *ranges, uint32_t count);
int tables_write_pool(void *context, uint32_t offset, const void *bytes, size_t size);
int tables_set_process(void *context, uint32_t tgid, const struct abi_unwind_process *process);
void tables_remove_process(void *context, uint32_t tgid);
/* Whether it is files that the kernel wants to be told of, and not processes. */
bool tables_by_file(const struct tables *t);
int tables_set_file(
	void *context, const struct abi_file *file, const struct abi_unwind_process *ranges);
void tables_remove_file(void *context, const struct abi_file *file);
void tables_set_files_turn(void *context, uint32_t turn);
void tables_set_epoch(void *context, uint32_t epoch);
void tables_set_rules_turn(void *context, uint32_t turn);
void tables_set_full(void *context, bool full);
/*
 * Whether TGID's samples are thrown away: then their walks are not left to us. It may be forgotten
 * when another process is left out, so it is told again with each sample.
 */
void tables_leave_out(struct tables *t, uint32_t tgid, bool out);
