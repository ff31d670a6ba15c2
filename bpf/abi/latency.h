/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Function latency: what bpf/probes/latency.bpf.c and user space share. A function has one probe on
 * its entry and one on each of its return instructions. At the entry an open call is stored, at the
 * return its duration is added to a cell of the function's histogram.
 */
#include "bpf/abi/runtime_go.h"
#include "bpf/abi/sample.h"

enum {
	ABI_LATENCY_FUNCTIONS = 16384, /* at most; the map has as many as user space asks for */
	ABI_LATENCY_OPEN_CALLS = 65536, /* by default; the map is preallocated */
	ABI_LATENCY_CELLS = 65536, /* as above, for each CPU */
};

/* A probe's cookie is the function's number, with one of these bits for other places than its
 * entry. */
#define ABI_LATENCY_RETURN (1ULL << 32)
#define ABI_LATENCY_AGAIN (1ULL << 31) /* Go: behind the prologue's call of morestack */
#define ABI_LATENCY_NUMBER (ABI_LATENCY_AGAIN - 1)

/* What user space replaces in programs at kernel functions (kernel_latency.bpf.c). */
enum abi_latency_placeholder {
	ABI_LATENCY_OWN_COOKIE = 0x5eed0f0a, /* the cookie of the one probe that has the program */
	ABI_LATENCY_CALL_SESSION_COOKIE = 0x5eed0f0b, /* calls of functions of the kernel */
	ABI_LATENCY_CALL_SESSION_IS_RETURN = 0x5eed0f0c,
	ABI_LATENCY_PREEMPT_COUNT = 0x5eed0f0d, /* the type of a per-CPU variable of the kernel */
};

enum abi_latency_function_flags {
	/*
	 * Runs on a fiber's stack, which may move and change threads: its calls are identified by
	 * the fiber and the distance from the stack's end. `go` says how to find the goroutine.
	 */
	ABI_LATENCY_FIBER = 1 << 0,
	/*
	 * Not every call was measured at some time, so that returns without an entry are no loss.
	 * User space sets it, and never clears it.
	 */
	ABI_LATENCY_THINNED = 1 << 1,
	/* Not measured any more; its sites may be attached for some time yet. */
	ABI_LATENCY_ENDED = 1 << 2,
	/* Traced calls of it begin trees (bpf/abi/trace.h). */
	ABI_LATENCY_ROOT = 1 << 3,
	/* Not traced itself: its entry is the end of the fiber, which calls nothing any more. */
	ABI_LATENCY_FIBER_END = 1 << 4,
	/*
	 * Has a probe ABI_LATENCY_AGAIN, restart_off bytes behind the entry: so it is known when it
	 * begins again.
	 */
	ABI_LATENCY_AGAIN_SITE = 1 << 5,
};

/* Which calls have a histogram of their own. */
enum abi_latency_by {
	ABI_LATENCY_BY_FUNCTION = 0,
	ABI_LATENCY_BY_FIBER, /* goid; 0 = not in a goroutine */
	ABI_LATENCY_BY_PROCESS, /* tgid, in the agent's pid namespace */
	ABI_LATENCY_BY_CGROUP, /* cgroup v2 id */
};

#define ABI_LATENCY_NO_STACK_CHECK 0xffffffffU

/* By number, in the map latency_functions. */
struct abi_latency_function {
	abi_u32 flags; /* enum abi_latency_function_flags */
	/*
	 * Go: the prologue calls morestack, which starts the function again, if sp - stack_check <=
	 * g.stackguard0. ABI_LATENCY_NO_STACK_CHECK = it has none, or it is not known.
	 */
	abi_u32 stack_check; /* bytes */
	/* One call of 2^thin_shift, chosen at random, is measured, and counts as so many. */
	abi_u32 thin_shift;
	/*
	 * Go: so many bytes behind the entry is the return address of the prologue's call of
	 * morestack. 0 = not known: BPF sets it at the first restart that it foresees. A function
	 * that ends by jumping to another one must have neither this nor a stack_check.
	 */
	abi_u32 restart_off;
	abi_u32 by; /* enum abi_latency_by */
	abi_u32 set; /* of its processes, with by_sets */
	struct abi_runtime_go go;
	abi_u64 kaddr; /* of a kernel function; 0 = several functions, or of a program */
};

/* Load-time settings of the object. */
struct abi_latency_config {
	abi_u32 cookie_in_path; /* the kernel has no cookies: bpf/abi/site_path.h */
	/*
	 * 0: the processes are those that the filters want. 1: those in latency_processes whose
	 * `sets` has the function's, and each process has histograms of its own.
	 */
	abi_u32 by_sets;
	/*
	 * 1: descendants of the processes that the filter wants are wanted from their first
	 * instruction on; user space adds them to the filter only when it has read of them.
	 */
	abi_u32 follow;
	/*
	 * Children of our process are not measured: this is mm_struct.env_end of ours, which those
	 * share that execute no other program, and nobody else, as addresses are random. 0 = they
	 * are measured.
	 */
	abi_u64 own_env_end;
	/*
	 * Whether ABI_LATENCY_PREEMPT_COUNT is the type of the variable that has the processor's
	 * preempt_count, and how many bytes into it.
	 */
	abi_u32 preempt_count_known, preempt_count_off;
};

/* Processes are in sets; a function is measured in the processes of one set. */
enum { ABI_LATENCY_SETS = 64, ABI_LATENCY_PROCESSES = 65536 };

/* By tgid in the agent's pid namespace, in the map latency_processes. */
struct abi_latency_process {
	abi_u64 sets; /* a bit for each */
	abi_u32 number; /* user space's own, not 0; in the cells of its calls */
	abi_u32 padding;
};

/* By function's number, a value for each CPU. */
struct abi_latency_entries {
	abi_u64 calls; /* that began in wanted processes */
	abi_u64 hits; /* of its sites, in any process; only counted with by_sets */
};

/*
 * A call that has not returned. sp is the same at the entry and at the return, and no other call of
 * the process has it meanwhile.
 */
struct abi_open_call_key {
	abi_u32 tgid; /* in the initial pid namespace */
	abi_u32 function;
	abi_u64 owner; /* address of the fiber's object; 0 = not on a fiber's stack */
	abi_u64 depth; /* with an owner the distance of sp from the end of its stack, else sp */
};

enum abi_open_call_flags {
	ABI_OPEN_CALL_RESTARTS = 1 << 0, /* its prologue is about to call morestack */
	ABI_OPEN_CALL_UNMEASURED = 1 << 1, /* kept only because it restarts */
	ABI_OPEN_CALL_AGAIN = 1 << 2, /* morestack has returned: the next entry is this call's */
};

enum { ABI_LATENCY_RESTARTS = 4096 /* goroutines whose last restart is remembered */ };

struct abi_open_call {
	abi_u64 start_ns; /* CLOCK_MONOTONIC */
	union {
		abi_u64 restarted_ns; /* last; 0 = never */
		abi_u64 kernel_stack; /* of a kernel function with its callers: id, 0 = none */
	};
	abi_u64 by; /* as in the cell */
	abi_u64 fiber_id; /* goid; 0 = not in a goroutine */
	abi_u32 tgid, tid; /* in the agent's pid namespace */
	abi_u32 flags; /* enum abi_open_call_flags */
	abi_u32 thin_shift; /* the function's when the call began */
	abi_u32 process; /* abi_latency_process.number; 0 without by_sets */
	abi_u32 window; /* that kernel_stack belongs to */
};

/* A bucket of the histogram of a function, or of its calls of one fiber, process or cgroup. */
struct abi_latency_cell_key {
	abi_u32 function;
	abi_u32 bucket; /* abi_latency_bucket() */
	abi_u64 by; /* according to enum abi_latency_by; 0 for ABI_LATENCY_BY_FUNCTION */
	abi_u32 process; /* as in the call */
	abi_u32 padding;
};

/* A value for each CPU. Calls that were not measured are included in count and sum_ns. */
struct abi_latency_cell {
	abi_u64 count;
	abi_u64 sum_ns;
	abi_u64 max_ns;
};

/*
 * Histograms have 8 buckets of equal width for each power of two: 0 to 15 ns have one each, and no
 * bucket is wider than an eighth of its lower bound. The last bucket has what is longer than 64
 * minutes.
 */
enum {
	ABI_LATENCY_BUCKET_BITS = 3, /* log2 of the buckets per power of two */
	ABI_LATENCY_BUCKETS = 319,
};

static inline __attribute__((always_inline)) abi_u32 abi_latency_bucket(abi_u64 ns)
{
	abi_u32 power = 0; /* floor(log2(ns)) - ABI_LATENCY_BUCKET_BITS */
	abi_u32 bucket;

	if (ns >> 44)
		return ABI_LATENCY_BUCKETS - 1;
	if (ns >> (32 + ABI_LATENCY_BUCKET_BITS))
		power = 32;
	if (ns >> (power + 16 + ABI_LATENCY_BUCKET_BITS))
		power += 16;
	if (ns >> (power + 8 + ABI_LATENCY_BUCKET_BITS))
		power += 8;
	if (ns >> (power + 4 + ABI_LATENCY_BUCKET_BITS))
		power += 4;
	if (ns >> (power + 2 + ABI_LATENCY_BUCKET_BITS))
		power += 2;
	if (ns >> (power + 1 + ABI_LATENCY_BUCKET_BITS))
		power += 1;
	bucket = (power << ABI_LATENCY_BUCKET_BITS) + (abi_u32)(ns >> power);
	return bucket < ABI_LATENCY_BUCKETS ? bucket : ABI_LATENCY_BUCKETS - 1;
}

/* The shortest duration in BUCKET; that of the next one ends it. */
static inline __attribute__((always_inline)) abi_u64 abi_latency_bucket_start(abi_u32 bucket)
{
	abi_u32 power = bucket >> ABI_LATENCY_BUCKET_BITS;

	if (power < 2)
		return bucket;
	return (abi_u64)((bucket & 7) + 8) << (power - 1);
}

_Static_assert(sizeof(struct abi_latency_function) == 80, "map value's layout");
_Static_assert(sizeof(struct abi_open_call_key) == 24, "map key's layout");
_Static_assert(sizeof(struct abi_open_call) == 56, "map value's layout");
_Static_assert(sizeof(struct abi_latency_cell_key) == 24, "map key's layout");
_Static_assert(sizeof(struct abi_latency_process) == 16, "map value's layout");
_Static_assert(sizeof(struct abi_latency_entries) == 16, "map value's layout");
_Static_assert(sizeof(struct abi_latency_cell) == 24, "map value's layout");
