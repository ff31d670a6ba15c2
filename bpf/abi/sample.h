/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What the sampler writes into a CPU's ring, as PERF_SAMPLE_RAW data of the CPU's output event.
 * Each record begins with its kind. A sample is an abi_tick, an abi_switch_out or an abi_call. It
 * is preceded by an abi_stack for the kernel stack and one for the user stack, and an
 * abi_fiber_facts, unless they have already been shipped in this window. The user's abi_stack may
 * also follow the sample within one record. A sample whose user stack BPF could not walk to its end
 * is an abi_unfinished. An abi_wake ends the wait that an abi_switch_out began.
 *
 * perf may pad the raw area by up to 7 bytes at the end.
 */
#ifndef __BPF__
#include <stdint.h>
typedef uint8_t abi_u8;
typedef uint16_t abi_u16;
typedef uint32_t abi_u32;
typedef uint64_t abi_u64;
#else
typedef __u8 abi_u8;
typedef __u16 abi_u16;
typedef __u32 abi_u32;
typedef __u64 abi_u64;
#endif

enum abi_kind {
	ABI_TICK = 1,
	ABI_SWITCH_OUT = 2,
	ABI_WAKE = 3,
	ABI_STACK = 4,
	ABI_SIGHTINGS_RECORD = 5,
	ABI_CALL = 6,
	ABI_TRACE = 7, /* bpf/abi/trace.h */
	ABI_FIBER_FACTS = 8, /* bpf/abi/fiber_facts.h */
	ABI_CHUNK = 9, /* of a deep stack */
	ABI_RETURNS_RECORD = 10,
};

enum {
	ABI_COMM_BYTES = 16,
	ABI_MAX_FRAMES = 256, /* the kernel's walk: kernel.perf_event_max_stack, 127 by default */
	/*
	 * A deeper walk by tables goes on and keeps the outermost frames; those between are left
	 * out.
	 */
	ABI_INNER_FRAMES = 128, /* then kept from the innermost on; a power of 2 */
	ABI_OUTER_FRAMES = ABI_MAX_FRAMES - ABI_INNER_FRAMES, /* a power of 2 */
	ABI_WALK_FRAMES = 4096, /* passed in all, at most */
};

enum abi_sample_flags {
	ABI_SAMPLE_KERNEL = 1 << 0, /* the CPU was in kernel mode */
	ABI_SAMPLE_KTHREAD = 1 << 1, /* a thread without user memory */
	ABI_SAMPLE_UNFINISHED = 1 << 2, /* the record is an abi_unfinished */
	/*
	 * In execve(): the saved user registers and the memory may belong to different programs, so
	 * there is no user stack.
	 */
	ABI_SAMPLE_EXECUTING = 1 << 3,
	/*
	 * Of an abi_call: fiber_id was read as the function's own file wants it, not by the facts
	 * of fiber_generation.
	 */
	ABI_SAMPLE_FIBER_OF_CALL = 1 << 4,
};

enum abi_stack_flags {
	ABI_STACK_KERNEL = 1 << 0,
	ABI_STACK_DEPTH = 1 << 1, /* the walk stopped at its limit of frames */
	ABI_STACK_RUNTIME_FRAMES = 1 << 2, /* some frames take two words: bpf/abi/frame.h */
	ABI_STACK_CALL = 1 << 3, /* the first frame stands for its function, wherever the pc is */
	ABI_STACK_END_SHIFT = 4, /* bits from here on: enum abi_unwind_end, of a walk by tables */
	ABI_STACK_END_MASK = 0xf << ABI_STACK_END_SHIFT,
	/*
	 * Of ABI_MAX_FRAMES pcs the last ABI_OUTER_FRAMES are the outermost of more. BPF leaves
	 * them as a ring: the bits say which of these is the innermost.
	 */
	ABI_STACK_MIDDLE = 1 << 8,
	ABI_STACK_RING_SHIFT = 16,
	ABI_STACK_RING_MASK = (ABI_OUTER_FRAMES - 1) << ABI_STACK_RING_SHIFT,
};

/* Why a walk by tables ended. */
enum abi_unwind_end {
	ABI_UNWIND_GOES_ON = 0,
	ABI_UNWIND_ROOT,
	ABI_UNWIND_DEPTH, /* ABI_WALK_FRAMES; the kernel's walk: the limit of its frames */
	ABI_UNWIND_GAP, /* code without a table, and fp does not look like a frame pointer */
	ABI_UNWIND_UNREADABLE, /* the stack could not be read */
	ABI_UNWIND_BAD_REGISTER, /* a register that is not tracked or has an impossible value */
	ABI_UNWIND_UNKNOWN_MAPPING, /* as GAP, for code of no known file */
	ABI_UNWIND_MISSED, /* a table is not loaded: user space finishes the walk */
	ABI_UNWIND_NOT_LOADED, /* as MISSED, but user space cannot: went on by frame pointer */
	ABI_UNWIND_ENDS,
};

/* The head of all samples: the thread and its stacks. */
struct abi_sample {
	abi_u32 kind; /* ABI_TICK, ABI_SWITCH_OUT or ABI_CALL */
	abi_u32 flags; /* enum abi_sample_flags */
	abi_u64 user_stack; /* id, 0 = none */
	abi_u64 kernel_stack; /* id, 0 = none */
	abi_u64 fiber_id; /* the fiber (goroutine) that the thread runs; 0 = none known */
	abi_u64 fiber_facts; /* id of an abi_fiber_facts; 0 = none */
	abi_u64 cgroup_id; /* cgroup v2; 0 = none */
	abi_u32 tgid, tid; /* in the agent's pid namespace */
	abi_u32 cpu;
	abi_u32 window; /* the window the ids belong to */
	/* Process generation that fiber_id and fiber_facts were read for; 0 = none. */
	abi_u32 fiber_generation;
	abi_u32 unwind_generation; /* of the process whose ranges the walk used; 0 = none */
	abi_u32 unwind_missed; /* 1 + the slot of an unwind page that is not loaded; 0 = none */
	/*
	 * The kernel's self_exec_id, which counts execs and is inherited over fork(). Together with
	 * the tgid it identifies the program that was sampled.
	 */
	abi_u32 exec_id;
	char comm[ABI_COMM_BYTES]; /* the thread's; arbitrary bytes, NUL-padded */
};

/* The sampling event interrupted a running thread. */
struct abi_tick {
	struct abi_sample sample; /* kind: ABI_TICK */
	abi_u64 period; /* the event's: ns for cpu-clock, cycles for cycles */
};

/* A thread leaves the CPU. Its abi_wake reports for how long. */
struct abi_switch_out {
	struct abi_sample sample; /* kind: ABI_SWITCH_OUT */
	abi_u64 left_ns; /* CLOCK_MONOTONIC; with the thread it identifies the wait */
};

/* A function whose latency is measured returns. The user stack begins with it. */
struct abi_call {
	struct abi_sample sample; /* kind: ABI_CALL */
	/* Nanoseconds << ABI_CALL_SHIFT_BITS | shift: it stands for 2^shift calls. */
	abi_u64 duration;
};

enum { ABI_CALL_SHIFT_BITS = 5, ABI_CALL_SHIFT = (1 << ABI_CALL_SHIFT_BITS) - 1 };

/* The thread of an abi_switch_out runs again. */
struct abi_wake {
	abi_u32 kind; /* ABI_WAKE */
	abi_u32 window; /* at the wake-up */
	abi_u32 tgid, tid; /* as in the abi_switch_out */
	abi_u64 left_ns; /* as in the abi_switch_out */
	abi_u64 wait_ns; /* since left_ns */
};

struct abi_stack {
	abi_u32 kind; /* ABI_STACK */
	abi_u32 flags; /* enum abi_stack_flags */
	abi_u64 id; /* a 64-bit hash of the frames and the flags; never 0 */
	abi_u32 window;
	abi_u32 frame_count; /* words */
	/* As in bpf/abi/frame.h, innermost first. All pcs but the first are return addresses, or
	 * the addresses of interrupted code (signals, Go's preemption, interrupts) plus 1: the code
	 * of either is found one byte before. The kernel's own walks do not add that 1. */
	abi_u64 frames[];
};

/* Values of abi_file.inode. No inode has the number ABI_FILE_NONE. */
#define ABI_FILE_NONE 0ULL
#define ABI_FILE_VDSO (~0ULL) /* the other fields are 0 */

/*
 * A file's identity in the kernel. It is only compared, never looked up: user space learns from
 * samples which file it is. Size and mtime make a rewritten file a different one.
 */
struct abi_file {
	abi_u64 inode;
	abi_u64 size; /* bytes */
	abi_u64 mtime_s;
	abi_u32 mtime_ns; /* below the second */
	abi_u32 device;
	abi_u32 generation; /* of the inode number */
	abi_u32 reserved; /* 0 */
};

/* What /proc and side-band records show for a file of a stacked file system (since 6.7). */
struct abi_shown_file {
	abi_u64 inode; /* 0 = the file itself is shown */
	abi_u32 device;
	abi_u32 reserved; /* 0 */
};

struct abi_mapping {
	abi_u64 start, end; /* pc, end exclusive */
	abi_u64 file_off; /* of start, bytes */
	abi_u64 executable; /* 0 or 1 */
	struct abi_file file;
	struct abi_shown_file shown;
};

/* Mappings that a walk of TGID found in the kernel's VMA tree. The walk's sample comes next. */
enum {
	ABI_SIGHTINGS = 8, /* per walk, at most */
	ABI_SIGHTING_SLOTS = 16384,
};

struct abi_sighting {
	abi_u64 pc; /* within the mapping */
	abi_u64 start, end, file_off; /* as in struct abi_mapping */
	abi_u64 inode, shown_inode;
	abi_u32 device, shown_device;
};

struct abi_sightings {
	abi_u32 kind; /* ABI_SIGHTINGS_RECORD */
	abi_u32 tgid;
	abi_u32 window;
	abi_u32 count; /* at most ABI_SIGHTINGS */
	struct abi_sighting of[];
};

/* A question to bpf/unwind/mapping_probe.bpf.c, and its answer. */
enum abi_probe_answer { ABI_PROBE_ERROR = 0, ABI_PROBE_NOTHING, ABI_PROBE_MAPPING };

struct abi_mapping_probe {
	abi_u64 address;
	abi_u32 found; /* enum abi_probe_answer */
	abi_u32 reserved;
	struct abi_mapping mapping;
};

/*
 * The fiber that the thread runs. A goroutine has a stack of its own; the runtime's object for the
 * fiber says where.
 */
enum { ABI_FIBER_HEAD_WORDS = 13 /* of that object are shipped */ };

struct abi_unwind_fiber {
	abi_u64 address; /* of the runtime's object; 0 = none, or not known */
	abi_u64 thread; /* the runtime's object for the thread; the fiber's must point to it */
};

/* Callee-saved registers other than the frame pointer that some files' rules need. */
enum abi_kept {
	ABI_KEPT_R12 = 0, /* code that a runtime calls on another stack (bpf/abi/runtime_go.h) */
	ABI_KEPT_RBX = 1, /* the loader below _dl_runtime_resolve, which realigns the stack */
	ABI_KEPT_REGISTERS = 2,
};

/* All registers of x86_64, by DWARF number: known of the innermost frame only. */
enum { ABI_OWN_REGISTERS = 16 };

/*
 * Follows a sample whose walk is unfinished because a table was not loaded: the registers of its
 * last frame and the stack from there on. If the walk may continue on another stack, as a fiber's
 * may, a piece of that stack comes first.
 */
struct abi_unwind_rest {
	abi_u64 pc, sp, fp;
	abi_u64 lr; /* arm64, of an interrupted frame; else 0 */
	abi_u64 kept[ABI_KEPT_REGISTERS]; /* x86_64; 0 = not known */
	abi_u64 own[ABI_OWN_REGISTERS]; /* x86_64: of the innermost frame */
	abi_u64 has_own; /* 1: this is that frame; 2: its caller; 0: neither */
	abi_u16 is_return; /* 1: pc is a return address */
	abi_u16 deep_count; /* chunks of the stack behind what the sample has */
	abi_u32 stack_bytes; /* size of abi_unfinished.stack, other_room included */
	abi_u64 stack_address; /* of the byte after other_room; at most sp */
	struct abi_mapping mapping; /* of pc, if BPF does not know its file yet; else end = 0 */
	struct abi_unwind_fiber fiber;
	abi_u64 fiber_head[ABI_FIBER_HEAD_WORDS]; /* memory at fiber.address; 0 if there is none */
	abi_u64 other_address; /* of the other stack's piece */
	abi_u32 other_room; /* bytes that abi_unfinished.stack reserves for it, at the beginning */
	abi_u32 other_bytes; /* how many of these could be read */
};

enum {
	ABI_UNFINISHED_CHUNK_BYTES = 1024, /* the unit in which stacks are read */
	ABI_UNFINISHED_CHUNKS = 24, /* an element of a per-CPU map has at most 32 KiB */
	ABI_UNFINISHED_OTHER_CHUNKS = 16, /* of these for the other stack, at most */
	ABI_UNFINISHED_STACK_BYTES = ABI_UNFINISHED_CHUNKS * ABI_UNFINISHED_CHUNK_BYTES,
	ABI_DEEP_CHUNKS = 232, /* more, by id: 256 KiB in all */
};

/*
 * A piece of a deep stack, behind the bytes that unfinished samples have. The outer part of a stack
 * seldom changes from one sample to the next: it is shipped once, before the first sample that
 * refers to it, and again about a second later.
 */
struct abi_chunk {
	abi_u32 kind; /* ABI_CHUNK */
	abi_u32 reserved; /* 0 */
	abi_u64 id; /* a 64-bit hash of the bytes and their address; never 0 */
	abi_u8 bytes[ABI_UNFINISHED_CHUNK_BYTES];
};

/*
 * Words of the stack of TID's unfinished sample, which comes next, that may be return addresses:
 * they follow a call. The walk may have stopped in code that has no table.
 */
enum {
	ABI_RETURNS = 32, /* at most */
	ABI_RETURN_WORDS = 256, /* that are looked at, from sp on */
};

struct abi_return {
	abi_u64 word; /* of the stack, 0 = at sp */
	abi_u64 code; /* the 8 bytes before the address that it has */
};

struct abi_returns {
	abi_u32 kind; /* ABI_RETURNS_RECORD */
	abi_u32 tid;
	abi_u64 sp; /* abi_unwind_rest.sp */
	abi_u32 count; /* at most ABI_RETURNS, innermost first */
	abi_u32 words; /* how many words were looked at */
	struct abi_return of[ABI_RETURNS]; /* the record ends behind `count` of them */
};

struct abi_unfinished {
	/* flags has ABI_SAMPLE_UNFINISHED; user_stack has the frames so far. */
	union {
		struct abi_sample sample; /* its kind selects the member */
		struct abi_tick tick;
		struct abi_switch_out switch_out;
		struct abi_call call;
	};
	struct abi_unwind_rest rest;
	/*
	 * rest.stack_bytes. Behind them are the ids of rest.deep_count chunks, each an abi_u64,
	 * which continue the stack; only if stack_bytes is ABI_UNFINISHED_STACK_BYTES.
	 */
	abi_u8 stack[];
};

enum { ABI_SAMPLE_BYTES = sizeof(struct abi_tick) }; /* size of a sample of any kind */

_Static_assert(sizeof(struct abi_tick) == 104, "the ring's layout");
_Static_assert(sizeof(struct abi_switch_out) == ABI_SAMPLE_BYTES, "the ring's layout");
_Static_assert(sizeof(struct abi_call) == ABI_SAMPLE_BYTES, "the ring's layout");
_Static_assert(sizeof(struct abi_wake) == 32, "the ring's layout");
_Static_assert(sizeof(struct abi_mapping) == 88, "the ring's layout");
_Static_assert(sizeof(struct abi_stack) == 24, "the ring's layout");
_Static_assert(sizeof(struct abi_sighting) == 56, "the ring's layout");
_Static_assert(sizeof(struct abi_sightings) == 16, "the ring's layout");
_Static_assert(sizeof(struct abi_returns) == 24 + 32 * 16, "the ring's layout");
_Static_assert(sizeof(struct abi_chunk) == 16 + 1024, "the ring's layout");
_Static_assert(sizeof(struct abi_unwind_rest) == 200 + 88 + 16 + 104 + 16, "the ring's layout");
_Static_assert(sizeof(struct abi_unfinished) == 104 + 424, "the ring's layout");
