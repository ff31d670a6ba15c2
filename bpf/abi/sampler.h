/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The probes' load-time settings (read-only data of each BPF object) and their counters. */
#include "bpf/abi/kernel_walk.h"
#include "bpf/abi/runtime_go.h"
#include "bpf/abi/sample.h"

enum abi_stack_choice {
	ABI_STACKS_BOTH = 0,
	ABI_STACKS_USER = 1, /* -U */
	ABI_STACKS_KERNEL = 2, /* -K */
};

enum {
	ABI_MAX_PIDS = 1024, /* each in -p and -t */
	ABI_SEEN_SLOTS = 1 << 15, /* tags of shipped stacks; a collision only ships frames again */
	ABI_RUNTIME_PROCESSES = 4096,
	ABI_RUNTIME_HINTS = 4096, /* bits of abi_shared.runtime_hints */
	ABI_LEFT_OUT = 4096, /* slots of abi_shared.left_out */
	ABI_LEFT_OUT_CGROUPS = 2048,
	ABI_DESCENDANTS = 4096, /* of processes that are followed */
	ABI_WAITS = 16384, /* threads off the CPU that BPF can track, with --off-cpu */
};

struct abi_sampler_config {
	abi_u32 stacks; /* enum abi_stack_choice */
	abi_u32 pidns_level; /* 0 = the agent is in the initial pid namespace; set by collect */
	abi_u32 filter_tgids; /* 1 = only tgids in the map `tgids` */
	abi_u32 filter_tids; /* 1 = only tids in the map `tids` */
	abi_u32 filter_comm; /* 1 = only threads whose comm equals `comm` */
	abi_u32 cgroup_level; /* 1 + depth of the wanted cgroup below the root; 0 = no filter */
	abi_u64 cgroup_id; /* of the wanted cgroup: the thread's, or an ancestor of it */
	abi_u64 fiber_id; /* the only wanted fiber; 0 = no filter */
	abi_u32 self_tgid; /* never sampled, in the agent's pid namespace; 0 = none */
	abi_u32 read_fibers; /* 0 = do not read fiber ids */
	char comm[ABI_COMM_BYTES];
	/* collect sets the rest. */
	/*
	 * Inode number of the agent's pid namespace, if that is not the initial one. A process
	 * cannot see how deep its namespace is, so the inode decides and not the level.
	 */
	abi_u32 pidns_inode;
	abi_u32 max_frames; /* kernel.perf_event_max_stack, at most ABI_MAX_FRAMES */
	/* Bytes of stack that unfinished samples may ship on a CPU between two ring readings. */
	abi_u32 unfinished_allowance;
	/* Data bytes of each sample ring, a power of two; 0 = this probe uses perf's rings. */
	abi_u32 sample_ring_bytes;
	abi_u32 unwind_by_mapping; /* 1 = VMA lookup, 0 = table of ranges */
	abi_u32 page_shift; /* log2 of the kernel's page size (64 KiB on some arm64) */
	abi_u32 choose_cgroups; /* 1 = not threads of the control groups in `left_out_cgroups` */
	abi_u32 unwind_by_tables; /* 0 = the kernel walks user stacks, by frame pointer */
};

enum abi_counter {
	ABI_COUNT_SAMPLES, /* ticks that passed the filters; stays first */
	ABI_COUNT_FILTERED,
	ABI_COUNT_RUN_NS, /* time spent in the program */
	ABI_COUNT_RUNS,
	ABI_COUNT_OUTPUT_FULL, /* sample records that did not fit the ring */
	ABI_COUNT_STACK_FULL, /* stack records that did not fit the ring */
	ABI_COUNT_OUTPUT_ERROR, /* other failures of bpf_perf_event_output() */
	ABI_COUNT_USER_STACK_ERROR, /* samples without a user stack (no memory, no stack) */
	ABI_COUNT_FIBER_ERROR, /* fibers of a known runtime that could not be read */
	ABI_COUNT_UNWIND_MISSES, /* unfinished walks: a table was not loaded */
	ABI_COUNT_KERNEL_WALKS, /* kernel stacks that BPF walked itself */
	ABI_COUNT_KERNEL_WALKS_WRONG, /* compared walks that differed from the kernel's */
	ABI_COUNT_WAITS, /* sampled waits that began */
	ABI_COUNT_WAITS_FULL, /* waits that did not fit the map */
	ABI_COUNT_WAITS_UNENDED, /* waits whose end was not seen */
	ABI_COUNT_SIGHTINGS_FULL, /* abi_sightings that did not fit the ring */
	ABI_COUNT_CALLS, /* of probed functions that were measured */
	ABI_COUNT_CALLS_UNMEASURED, /* left out because there are too many */
	ABI_COUNT_CALLS_OPEN_FULL, /* that did not fit the map of open calls */
	ABI_COUNT_CALLS_CELLS_FULL, /* that did not fit the histograms */
	ABI_COUNT_CALLS_ABANDONED, /* that never returned, replaced by the next at their place */
	ABI_COUNT_CALLS_FIBER_ERROR, /* entries and returns whose goroutine could not be read */
	ABI_COUNT_RETURNS_UNMATCHED, /* of calls that were not seen to begin */
	ABI_COUNT_CALLS_STACKS, /* measured ones whose stack was walked */
	ABI_COUNT_STACKS_NS, /* time that their walks took */
	ABI_COUNT_CALLS_STACK_BUSY, /* those that found no scratch memory for that */
	ABI_COUNT_CALLS_KERNEL_STACK_ERROR, /* of kernel functions: without their kernel stack */
	/* Kernel functions: on top of a program at another one, or the return was not seen. */
	ABI_COUNT_CALLS_MISSED,
	ABI_COUNT_KERNEL_HITS, /* runs of the programs at kernel functions */
	ABI_COUNT_LEFT_OUT, /* ticks and waits in left_out_cgroups */
	ABI_COUNTERS,
};

enum abi_runtime {
	ABI_RUNTIME_GO = 1,
	ABI_RUNTIMES,
};

/* What BPF needs to read the state of a process's runtime. */
struct abi_runtime_process {
	abi_u32 kind; /* enum abi_runtime */
	abi_u32 generation; /* copied into each sample; never 0 */
	abi_u32 exec_id; /* of the program that these facts hold for, as in struct abi_sample */
	abi_u32 exec_known; /* 0 = exec_id is not set yet and not compared */
	union {
		struct abi_runtime_go go;
	};
};

_Static_assert(sizeof(struct abi_sampler_config) == 96, "read-only data's layout");
_Static_assert(sizeof(struct abi_runtime_process) == 64, "map value's layout");
