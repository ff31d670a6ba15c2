/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's copy of the unwind tables: writes into BPF's maps. The owner decides what to write
 * and when. Only the part of the pool and of the ranges that is being written is mmapped, since
 * mapped pages of a map count as our own memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sampler.h"
#include "bpf/abi/unwind_maps.h"

struct tables;

struct tables_maps {
	int processes, ranges, slots, pool; /* descriptors, borrowed */
	int files; /* −1 = BPF has no VMA lookup */
	uint32_t *epoch, *full, *files_epoch,
		*rules_epoch; /* BPF's variables (struct abi_shared) */
	uint32_t *left_out; /* array of ABI_LEFT_OUT, in struct abi_shared too */
};

int tables_create(const struct tables_maps *maps, struct tables **ret_tables);
void tables_destroy(struct tables *t);
struct abi_unwind_slot *tables_slots(const struct tables *t); /* ABI_UNWIND_SLOTS of them */
/* The functions of struct unwind_target, with struct tables as the context. */
int tables_write_ranges(
	void *context, uint32_t first, const struct abi_unwind_range *ranges, uint32_t count);
int tables_write_pool(void *context, uint32_t offset, const void *bytes, size_t size);
int tables_set_process(void *context, uint32_t tgid, const struct abi_unwind_process *process);
void tables_remove_process(void *context, uint32_t tgid);
/* Whether BPF looks up ranges by file (VMA lookup) and not by process. */
bool tables_by_file(const struct tables *t);
int tables_set_file(
	void *context, const struct abi_file *file, const struct abi_unwind_process *ranges);
void tables_remove_file(void *context, const struct abi_file *file);
void tables_set_files_epoch(void *context, uint32_t epoch);
void tables_set_epoch(void *context, uint32_t epoch);
void tables_set_rules_epoch(void *context, uint32_t epoch);
void tables_set_full(void *context, bool full);
/*
 * Sets whether TGID's samples are dropped: BPF then leaves none of their walks unfinished. Call it
 * with each sample, since another process may have evicted TGID.
 */
void tables_leave_out(struct tables *t, uint32_t tgid, bool out);
