/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * How user space tells BPF where unwind tables apply: three arrays, and a hash that is written
 * last. Its keys are files if BPF can look up a process's mappings itself, else processes.
 *
 *   files[file]     -> ranges of offsets in the file  \ [first_range, + range_count),
 *   processes[tgid] -> ranges of its addresses        /  ascending by `start`
 *   range           -> slots[first_slot + page number in the module]
 *   slot            -> the page's bytes in the pool
 *
 * A running BPF program may still read freed elements, so they are reused only after a while.
 */
#include "bpf/abi/unwind.h"

enum {
	ABI_UNWIND_PROCESSES = 4096,
	ABI_UNWIND_FILES = 4096,
	ABI_UNWIND_RANGES = 49152, /* of all processes together: 1.5 MiB */
	ABI_UNWIND_FILE_RANGES = 8192, /* of all files together, if the keys are files */
	ABI_UNWIND_RANGE_STEPS = 16, /* of a binary search over all ranges */
	ABI_UNWIND_SLOTS = 32768, /* for 64 KiB of code each; 256 KiB */
	/* The pool's elements. A page lies within one of them. */
	ABI_UNWIND_REGION_BYTES = 1 << 20,
	ABI_UNWIND_REGIONS = 4,
};

/* A process or a file. A file uses only the first two fields. */
struct abi_unwind_process {
	abi_u32 first_range;
	abi_u32 range_count;
	abi_u32 generation; /* of the process; copied into each sample; never 0 */
	abi_u32 exec_id; /* of the program that the ranges belong to */
	abi_u32 settled; /* 1 = user space does not know code outside the ranges either */
	abi_u32 version; /* changes whenever anything else here or in the ranges does */
};

enum abi_unwind_range_kind {
	/* How to unwind code without a table. A checked fp is used only if it looks like one. */
	ABI_UNWIND_TABLES = 0, /* has slots; elsewhere by checked frame pointer */
	ABI_UNWIND_KEEPS_FP = 1, /* may have slots; elsewhere by frame pointer */
	ABI_UNWIND_WAITING = 2, /* not read yet: the walk stops, user space finishes it */
	ABI_UNWIND_MEMORY = 3, /* no file (JIT code): by checked frame pointer */
};

/* Code of one segment of one module. */
struct abi_unwind_range {
	abi_u64 start, end; /* pc, or byte offset in the file; end exclusive */
	abi_u64 address; /* of `start`, relative to the module's first page */
	abi_u32 first_slot;
	unsigned short slot_count; /* 0 = no tables at all */
	unsigned short kind; /* enum abi_unwind_range_kind */
};

enum {
	ABI_UNWIND_ABSENT = 0, /* not loaded: report to user space */
	ABI_UNWIND_NO_TABLE = 0xffffffff, /* the module has no table for this page */
	/* The pool's first bytes are never used, so that no offset equals ABI_UNWIND_ABSENT. */
	ABI_UNWIND_POOL_BEGIN = 64,
};

struct abi_unwind_slot {
	abi_u32 where; /* byte offset in the pool, or one of the above */
	abi_u32 used; /* the epoch of the last use, set by BPF */
};

_Static_assert(sizeof(struct abi_unwind_process) == 24, "map value's layout");
_Static_assert(sizeof(struct abi_unwind_range) == 32, "map value's layout");
_Static_assert(sizeof(struct abi_unwind_slot) == 8, "map value's layout");
