/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Where the running kernel has its own unwind tables (x86_64, CONFIG_UNWINDER_ORC): for each
 * address from which on another rule holds a 32-bit distance, from where that is written to the
 * address, ascending; and as many rules (struct orc_entry).
 */
#include "bpf/abi/sample.h"

enum {
	ABI_KERNEL_ROWS_MIN = 16,
	ABI_KERNEL_ROWS_MAX = 1 << 22,
	ABI_KERNEL_RULE_BYTES = 6,
	ABI_KERNEL_TRAMPOLINES = 3,
	/* So many walks of each CPU are compared with the kernel's at first, later one of so many.
	 */
	ABI_KERNEL_COMPARED = 64,
};

struct abi_kernel_tables {
	abi_u64 text, text_end; /* the kernel's own code, without modules */
	abi_u64 addresses, rules; /* 0, 0: not told */
	/*
	 * Code that a tracer makes functions return to; the kernel knows where they would have
	 * returned. 0 = not there.
	 */
	abi_u64 trampolines[ABI_KERNEL_TRAMPOLINES];
	abi_u64 index; /* where the first row of each 256 bytes of code is told, if it is there */
	abi_u32 count; /* rows; 0: the kernel is to walk. Set last */
	abi_u32 reserved;
};

_Static_assert(sizeof(struct abi_kernel_tables) == 72, "the variable's layout");
