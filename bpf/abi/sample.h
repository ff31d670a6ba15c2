/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What the sampler writes into a CPU's ring, as PERF_SAMPLE_RAW data of the CPU's output event:
 * first, where its frames have not been shipped in this window, an abi_stack for the user and one
 * for the kernel stack, then the abi_sample that names them. Both begin with `kind`.
 *
 * The raw area that perf delivers may be padded by up to 7 bytes at the end.
 */
#ifndef __BPF__
#include <stdint.h>
typedef uint8_t abi_u8;
typedef uint32_t abi_u32;
typedef uint64_t abi_u64;
#else
typedef __u8 abi_u8;
typedef __u32 abi_u32;
typedef __u64 abi_u64;
#endif

enum abi_kind {
	ABI_SAMPLE = 1,
	ABI_STACK = 2,
};

enum {
	ABI_COMM_BYTES = 16,
	ABI_MAX_FRAMES = 127, /* kernel.perf_event_max_stack's default */
};

enum abi_sample_flags {
	ABI_SAMPLE_KERNEL = 1 << 0, /* the CPU was in kernel mode */
	ABI_SAMPLE_KTHREAD = 1 << 1, /* a thread without user memory */
};

enum abi_stack_flags {
	ABI_STACK_KERNEL = 1 << 0,
	ABI_STACK_DEPTH = 1 << 1, /* the walk stopped at ABI_MAX_FRAMES */
};

struct abi_sample {
	abi_u32 kind; /* ABI_SAMPLE */
	abi_u32 flags; /* enum abi_sample_flags */
	abi_u64 user_stack; /* id, 0 = none */
	abi_u64 kernel_stack; /* id, 0 = none */
	abi_u64 goid; /* 0 = no goroutine known */
	abi_u64 cgroup_id; /* cgroup v2; 0 where there is none */
	abi_u64 period; /* of the sampling event: ns for cpu-clock, events for cycles */
	abi_u32 tgid, tid; /* in the agent's pid namespace */
	abi_u32 cpu;
	abi_u32 window; /* the window the ids belong to */
	abi_u32 go_generation; /* of the go_process entry that goid was read with; 0 = none */
	abi_u32 reserved;
	char comm[ABI_COMM_BYTES]; /* the thread's; any bytes, NUL-padded */
};

struct abi_stack {
	abi_u32 kind; /* ABI_STACK */
	abi_u32 flags; /* enum abi_stack_flags */
	abi_u64 id; /* a 64-bit hash of the frames and of the flags; never 0 */
	abi_u32 window;
	abi_u32 frame_count;
	abi_u64 frames[]; /* innermost first; return addresses but for the first */
};

_Static_assert(sizeof(struct abi_sample) == 88, "the ring's layout");
_Static_assert(sizeof(struct abi_stack) == 24, "the ring's layout");
