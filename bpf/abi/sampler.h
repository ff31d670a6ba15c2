/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The probes' load-time settings (read-only data of each BPF object) and per-CPU counters. */
#include "bpf/abi/kernel_walk.h"
#include "bpf/abi/runtime_go.h"
#include "bpf/abi/sample.h"

enum abi_stack_choice {
	ABI_STACKS_BOTH = 0,
	ABI_STACKS_USER = 1, /* -U */
	ABI_STACKS_KERNEL = 2, /* -K */
};

enum {
	ABI_MAX_PIDS = 1024, /* in -p, and in -t */
	ABI_SEEN_SLOTS = 1 << 15, /* shipped-stack tags; a collision only ships frames again */
	ABI_RUNTIME_PROCESSES = 4096,
	ABI_RUNTIME_HINTS = 4096, /* bits: which tgids, modulo this, may be in there */
	ABI_LEFT_OUT = 4096, /* processes, each at its tgid modulo this */
	ABI_WAITS = 16384, /* threads that are off the CPU, with --off-cpu */
};

struct abi_sampler_config {
	abi_u32 stacks; /* enum abi_stack_choice */
	abi_u32 pidns_level; /* 0 = the agent is in the initial pid namespace; set by collect */
	abi_u32 filter_tgids; /* 1: only tgids in the map `tgids` */
	abi_u32 filter_tids; /* 1: only tids in the map `tids` */
	abi_u32 filter_comm; /* 1: only threads whose comm equals `comm` */
	abi_u32 cgroup_level; /* depth of the wanted cgroup below the root + 1; 0 = no filter */
	abi_u64 cgroup_id; /* the wanted cgroup or an ancestor of the thread's */
	abi_u64 fiber_id; /* only this one; 0 = no filter */
	abi_u32 self_tgid; /* left out when not 0; in the agent's pid namespace */
	abi_u32 read_fibers; /* 0: no fiber_id is read */
	char comm[ABI_COMM_BYTES];
	/* The rest is set by collect. */
	/*
	 * Of the agent's pid namespace, where that is not the initial one. How deep it is cannot be
	 * seen from inside, so the inode number decides and not the level.
	 */
	abi_u32 pidns_inode;
	abi_u32 max_frames; /* kernel.perf_event_max_stack, at most ABI_MAX_FRAMES */
	/* Bytes that pieces of stack may take of a CPU's ring between two readings of it. */
	abi_u32 unfinished_allowance;
	/* Of data in each of the sampler's own rings, a power of two; 0: this probe has none. */
	abi_u32 sample_ring_bytes;
	abi_u32 unwind_by_mapping; /* 1: VMA lookup, 0: by the table of ranges */
	abi_u32 page_shift; /* of this kernel's pages: 64 KiB on some arm64 */
};

enum abi_counter {
	ABI_COUNT_SAMPLES, /* the program ran and its filters let the sample through; stays first */
	ABI_COUNT_FILTERED,
	ABI_COUNT_RUN_NS, /* time spent in the program */
	ABI_COUNT_RUNS,
	ABI_COUNT_OUTPUT_FULL, /* a sample record that did not fit the ring */
	ABI_COUNT_STACK_FULL, /* a stack record that did not fit the ring */
	ABI_COUNT_OUTPUT_ERROR, /* bpf_perf_event_output failed otherwise */
	ABI_COUNT_USER_STACK_ERROR, /* bpf_get_stack failed (no memory, no user stack) */
	ABI_COUNT_FIBER_ERROR, /* a process of a known runtime whose fiber could not be read */
	ABI_COUNT_UNWIND_MISSES, /* walks that met a table that was not loaded */
	ABI_COUNT_KERNEL_WALKS, /* kernel stacks that BPF walked by itself */
	ABI_COUNT_KERNEL_WALKS_WRONG, /* of those compared: not as the kernel walks */
	ABI_COUNT_WAITS, /* that began, of those wanted */
	ABI_COUNT_WAITS_FULL, /* that could not be remembered */
	ABI_COUNT_WAITS_UNENDED, /* whose end was not seen */
	ABI_COUNT_SIGHTINGS_FULL, /* records of mappings that did not fit the ring */
	ABI_COUNTERS,
};

enum abi_runtime {
	ABI_RUNTIME_GO = 1,
	ABI_RUNTIMES,
};

/* What BPF has to know of a process to read its runtime's state. */
struct abi_runtime_process {
	abi_u32 kind; /* enum abi_runtime */
	abi_u32 generation; /* copied into each sample; never 0 */
	abi_u32 exec_id; /* of the program with these facts, as in struct abi_sample */
	abi_u32 exec_known; /* 0: exec_id is not set yet, and not compared */
	union {
		struct abi_runtime_go go;
	};
};

_Static_assert(sizeof(struct abi_sampler_config) == 88, "read-only data's layout");
_Static_assert(sizeof(struct abi_runtime_process) == 40, "map value's layout");
