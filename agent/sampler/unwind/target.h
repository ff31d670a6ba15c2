/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The maps of bpf/abi/unwind_maps.h as an interface to write to. The agent supplies the kernel's
 * maps, tests supply memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind_maps.h"

struct unwind_target {
	struct abi_unwind_slot *slots; /* ABI_UNWIND_SLOTS, shared with the kernel */
	int (*write_ranges)(void *context, uint32_t first, const struct abi_unwind_range *ranges,
		uint32_t count);
	int (*write_pool)(void *context, uint32_t offset, const void *bytes, size_t size);
	int (*set_process)(void *context, uint32_t tgid, const struct abi_unwind_process *process);
	void (*remove_process)(void *context, uint32_t tgid);
	/* NULL, with the next two, if the kernel's table has processes and not files. */
	int (*set_file)(void *context, const struct abi_file *file,
		const struct abi_unwind_process *ranges);
	void (*remove_file)(void *context, const struct abi_file *file);
	void (*set_files_epoch)(void *context, uint32_t tick);
	void (*set_epoch)(void *context, uint32_t epoch);
	void (*set_rules_epoch)(void *context, uint32_t tick);
	/* FULL: user space can take no more unfinished walks. */
	void (*set_full)(void *context, bool full);
	void *context;
};
