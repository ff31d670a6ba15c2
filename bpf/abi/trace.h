/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Traced calls of functions: what bpf/probes/trace.bpf.c, kernel_trace.bpf.c and user space share.
 * Functions and their sites are those of bpf/abi/latency.h; here each entry and each return is
 * written into the ring.
 *
 * A task is what has a stack of its own: a goroutine, a thread, or a thread's signal stack. Its
 * open calls are numbered by level, from 0 for the root of a tree. What user space has to show is a
 * tree: the calls from the entry of a root until it has returned.
 */
#include "bpf/abi/fetch.h"
#include "bpf/abi/latency.h"

enum {
	ABI_TRACE_LEVELS = 65536, /* open calls of all tasks */
	ABI_TRACE_TASKS = ABI_TRACE_LEVELS, /* that have an open call */
	ABI_TRACE_PAYLOAD_BYTES = 512, /* as many as struct abi_fetched has (bpf/abi/fetch.h) */
};

/* Load-time settings of the object, beside those in struct abi_latency_config. */
struct abi_trace_config {
	abi_u32 max_depth; /* levels; calls below them are left out. 0 = none are */
	abi_u32 drilldown; /* 1: only calls of functions with ABI_LATENCY_ROOT are roots */
	/* When so many were written in a second, trees that would begin are left out. 0 = none. */
	abi_u64 events_per_second;
	abi_u64 fetches; /* 1: trace_fetches has something; else the verifier sees none of it */
};

enum { ABI_TRACE_TRAMPOLINES = 3 };

/* Of kernel_trace.bpf.c, written when all functions are attached: their calls begin together. */
struct abi_kernel_trace {
	abi_u64 on; /* 0 = no calls are traced yet */
	/* Where calls return to whose return is traced by the kernel (kaddr); 0 = not known. */
	abi_u64 trampolines[ABI_TRACE_TRAMPOLINES];
};

/*
 * What is fetched of a function's calls, by its number. The payload of an entry or a return is then
 * an abi_fetched, of whose bytes only those that are used follow.
 */
struct abi_trace_fetches {
	struct abi_fetch_set entry, results;
};

enum abi_trace_what {
	ABI_TRACE_ENTRY = 1,
	ABI_TRACE_RETURN = 2,
	/* All calls of the tree that are still open have ended, and none has returned. */
	ABI_TRACE_END = 3,
};

enum abi_trace_flags {
	ABI_TRACE_FIBER = 1 << 0, /* the task is a goroutine */
	ABI_TRACE_INCOMPLETE = 1 << 1, /* calls of the tree could not be followed */
	ABI_TRACE_TASK_ENDED = 1 << 2, /* of an END: the goroutine or thread has ended */
	ABI_TRACE_KERNEL = 1 << 3, /* the tree is of kernel functions, called by a thread */
	ABI_TRACE_INTERRUPT = 1 << 4, /* of an entry: on the stack of an interrupt */
};

/* Identifies a task while it lives; in the initial pid namespace. */
struct abi_trace_task_key {
	abi_u32 tgid;
	abi_u32 tid; /* 0 = a goroutine */
	/*
	 * The goroutine's object; of a thread 0, or the end of its signal stack; of its calls in
	 * the kernel ABI_TRACE_OWNER_KERNEL.
	 */
	abi_u64 owner;
};

enum { ABI_TRACE_OWNER_KERNEL = 1 };

/*
 * In the map trace_tasks while a task has open calls. User space removes those of threads and
 * processes that have ended, and their levels.
 */
struct abi_trace_task {
	abi_u64 incarnation; /* goid, or when the thread or its program began: keys are used again
			      */
	abi_u64 tree; /* 0 = none so far */
	abi_u64 left_out_depth; /* of the root, if the tree is left out */
	abi_u32 left_out; /* 1 + number of the function of the root; 0 = nothing is left out */
	abi_u32 levels; /* open calls */
	abi_u32 stored; /* elements of trace_levels, from level 0 on: `levels`, and ended ones */
	abi_u32 root; /* number of the root's function */
	abi_u32 sequence; /* of the tree's next event */
	abi_u32 flags; /* ABI_TRACE_FIBER, ABI_TRACE_INCOMPLETE */
	abi_u32 tgid, tid; /* in the agent's pid namespace; the tid is that of the first call */
	abi_u32 low, high; /* while a level is searched */
};

struct abi_trace_level_key {
	struct abi_trace_task_key task;
	abi_u32 level;
	abi_u32 reserved; /* 0 */
};

struct abi_trace_event {
	abi_u32 kind; /* ABI_TRACE */
	abi_u32 what; /* enum abi_trace_what */
	abi_u64 time_ns; /* CLOCK_MONOTONIC */
	abi_u64 tree; /* unique */
	abi_u64 fiber_id; /* goid; 0 = not in a goroutine */
	abi_u64 caller; /* of an entry: the return address; 0 = not known */
	struct abi_trace_task_key task;
	abi_u32 tgid, tid; /* in the agent's pid namespace; the tid is that of this moment */
	abi_u32 function; /* its number; of an END the root's */
	abi_u32 level;
	/* Of the tree's events, from 0: a gap shows how many were lost. */
	abi_u32 sequence;
	abi_u32 flags; /* enum abi_trace_flags */
	abi_u32 payload_bytes; /* that follow */
	abi_u32 reserved; /* 0 */
};

_Static_assert(sizeof(struct abi_fetched) == ABI_TRACE_PAYLOAD_BYTES, "fetched values fit");
_Static_assert(!(ABI_TRACE_PAYLOAD_BYTES & (ABI_TRACE_PAYLOAD_BYTES - 1)), "a mask is made of it");
_Static_assert(sizeof(struct abi_trace_fetches) == 32, "map value's layout");
_Static_assert(sizeof(struct abi_trace_config) == 24, "read-only data's layout");
_Static_assert(sizeof(struct abi_kernel_trace) == 32, "data's layout");
_Static_assert(sizeof(struct abi_trace_task_key) == 16, "map key's layout");
_Static_assert(sizeof(struct abi_trace_task) == 64, "map value's layout");
_Static_assert(sizeof(struct abi_trace_level_key) == 24, "map key's layout");
_Static_assert(sizeof(struct abi_trace_event) == 88, "the ring's layout");
