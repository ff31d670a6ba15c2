/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * How user space tells BPF where unwind tables apply: three arrays and a hash that is written last,
 * of files where BPF finds the mappings of a process by itself, else of processes.
 *
 *   files[file]     -> ranges of offsets in the file  \ [first_range, + range_count),
 *   processes[tgid] -> ranges of its addresses        /  ascending by `start`
 *   range           -> slots[first_slot + page number in the module]
 *   slot            -> the page's bytes in the pool
 *
 * What a running BPF program may still read is not used anew before some time has passed.
 */
#include "bpf/abi/unwind.h"

enum {
	ABI_UNWIND_PROCESSES = 4096,
	ABI_UNWIND_FILES = 4096,
	ABI_UNWIND_RANGES = 49152, /* of all processes together: 1.5 MiB */
	ABI_UNWIND_FILE_RANGES = 8192, /* of all files together, where there are no processes */
	ABI_UNWIND_RANGE_STEPS = 16, /* halvings of them */
	ABI_UNWIND_SLOTS = 32768, /* 64 KiB of code each; 256 KiB */
	/* The pool's elements; a page lies in one of them. */
	ABI_UNWIND_REGION_BYTES = 1 << 20,
	ABI_UNWIND_REGIONS = 4,
};

/* A process, or a file: that has nothing but ranges. */
struct abi_unwind_process {
	abi_u32 first_range;
	abi_u32 range_count;
	abi_u32 generation; /* of the process; copied into each sample; never 0 */
	abi_u32 exec_id; /* of the program that the ranges are of */
	abi_u32 settled; /* 1: code outside of the ranges is none that user space knows of either */
	abi_u32 version; /* another one whenever anything else here, or in the ranges, is */
};

enum abi_unwind_range_kind {
	ABI_UNWIND_TABLES = 0, /* has slots; what they leave out goes by a careful frame pointer */
	ABI_UNWIND_KEEPS_FP = 1, /* what its slots leave out, if any, goes by frame pointer */
	ABI_UNWIND_WAITING = 2, /* not read yet: the walk ends here and user space finishes it */
	ABI_UNWIND_MEMORY = 3, /* code of no file, as of a JIT: goes by a careful frame pointer */
};

/* Code of one segment of one module. */
struct abi_unwind_range {
	abi_u64 start, end; /* pc, or byte offset in the file; end exclusive */
	abi_u64 address; /* of `start`, counted from the beginning of the module's first page */
	abi_u32 first_slot;
	unsigned short slot_count; /* 0 = no tables at all */
	unsigned short kind; /* enum abi_unwind_range_kind */
};

enum {
	ABI_UNWIND_ABSENT = 0, /* not loaded: tell user space */
	ABI_UNWIND_NO_TABLE = 0xffffffff, /* the module has no table for this page */
	/* The pool's first bytes are never a page's, so that no place is ABI_UNWIND_ABSENT. */
	ABI_UNWIND_POOL_BEGIN = 64,
};

struct abi_unwind_slot {
	abi_u32 where; /* byte offset in the pool, or one of the above */
	abi_u32 used; /* the epoch of the last use, set by BPF */
};

_Static_assert(sizeof(struct abi_unwind_process) == 24, "map value's layout");
_Static_assert(sizeof(struct abi_unwind_range) == 32, "map value's layout");
_Static_assert(sizeof(struct abi_unwind_slot) == 8, "map value's layout");
