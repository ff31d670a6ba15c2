/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Where the running kernel has its own unwind tables (x86_64, CONFIG_UNWINDER_ORC): an ascending
 * array of the addresses at which the rule changes, each a 32-bit offset from its own location, and
 * an array of as many rules (struct orc_entry).
 */
#include "bpf/abi/sample.h"

enum {
	ABI_KERNEL_ROWS_MIN = 16,
	ABI_KERNEL_ROWS_MAX = 1 << 22,
	ABI_KERNEL_RULE_BYTES = 6,
	ABI_KERNEL_TRAMPOLINES = 3,
	/* Each CPU compares its first 64 walks with the kernel's own, then one in 64. */
	ABI_KERNEL_COMPARED = 64,
};

struct abi_kernel_tables {
	abi_u64 text, text_end; /* the kernel's own code, without modules */
	abi_u64 addresses, rules; /* of the two arrays; 0, 0 = not known */
	/*
	 * Code that tracers make functions return to; only the kernel knows the real return
	 * address. 0 = none.
	 */
	abi_u64 trampolines[ABI_KERNEL_TRAMPOLINES];
	abi_u64 index; /* expected address of orc_lookup[]: the first row of each 256 bytes */
	abi_u32 count; /* rows; 0 = leave the walk to the kernel. Set last */
	abi_u32 reserved;
};

_Static_assert(sizeof(struct abi_kernel_tables) == 72, "the variable's layout");
