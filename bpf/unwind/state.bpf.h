/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The state of a walk: the tracked registers, and the part of the stack that was read last. */
#include <stdbool.h>
#include <linux/types.h>

#include "bpf/abi/sample.h"
#ifdef __BPF__
#include "bpf/read_user.bpf.h"
#endif

#define UNWIND_INLINE static inline __attribute__((always_inline))

/* One that the verifier follows once, and not where it is called: a global function in BPF. */
#ifdef __BPF__
#define UNWIND_FUNCTION __noinline
#else
#define UNWIND_FUNCTION UNWIND_INLINE
#endif

enum {
	UNWIND_BLOCK_WORDS = 64, /* unit in which the stack is read */
	UNWIND_BLOCK_BYTES = UNWIND_BLOCK_WORDS * 8,
	UNWIND_BLOCK_ALIGN = 64,
	UNWIND_MIN_CODE = 4096,
	UNWIND_CODE_BITS = 56, /* of user addresses, with five levels of page tables */
};

#ifndef __BPF__
/* A copied piece of the process's memory. */
struct unwind_memory {
	__u64 address; /* of the first byte */
	__u64 size;
	const abi_u8 *bytes;
	const struct unwind_memory *next; /* NULL: the last piece */
};
#endif

/* What is known of the fiber that the thread runs. */
struct unwind_fiber {
	bool known;
	bool home; /* the stack pointer is on its stack */
	__u64 head[ABI_FIBER_HEAD_WORDS]; /* of the runtime's object for it */
};

struct unwind_state {
#ifndef __BPF__
	const struct unwind_memory *memory;
#endif
	__u64 pc, sp, fp;
	/* arm64, in a frame that has not stored it; x86_64: rdi, in the innermost frame; else 0 */
	__u64 lr;
	__u64 kept[ABI_KEPT_REGISTERS]; /* x86_64; 0 = not known */
	/*
	 * x86_64: all registers of the innermost frame. has_own is 1 in that frame, 2 in its
	 * caller (which may have had other values), and else 0.
	 */
	__u64 own[ABI_OWN_REGISTERS];
	__u64 has_own;
	__u64 is_return; /* 1 = pc is a return address, the call is before it */
	struct abi_unwind_fiber runs; /* what the thread runs, as read for the sample */
	__u64 block_address; /* of block[0]; 0 = none */
	__u64 block[UNWIND_BLOCK_WORDS];
	struct unwind_fiber fiber; /* read when needed; here because BPF's stack is small */
};

#ifdef __BPF__
UNWIND_INLINE long unwind_fetch(const struct unwind_state *s, void *to, __u32 size, __u64 address)
{
	(void)s;
	return read_user(to, size, address);
}
#else
UNWIND_INLINE long unwind_fetch(const struct unwind_state *s, void *to, __u32 size, __u64 address)
{
	for (const struct unwind_memory *m = s->memory; m; m = m->next) {
		__u64 at = address - m->address;

		if (size > m->size || at > m->size - size)
			continue;
		__builtin_memcpy(to, m->bytes + at, size);
		return 0;
	}
	return -1;
}
#endif

/* Reads the word at ADDRESS, and its neighbours, which the next frames mostly need. */
UNWIND_INLINE long unwind_word(struct unwind_state *s, __u64 address, __u64 *ret_word)
{
	__u64 at = address - s->block_address;

	if (address & 7)
		return unwind_fetch(s, ret_word, sizeof(*ret_word), address);
	if (at > UNWIND_BLOCK_BYTES - 8 || !s->block_address) {
		__u64 begin = address & ~(UNWIND_BLOCK_ALIGN - 1ULL);

		if (unwind_fetch(s, s->block, UNWIND_BLOCK_BYTES, begin)) {
			/* Near the end of the stack. */
			s->block_address = 0;
			return unwind_fetch(s, ret_word, sizeof(*ret_word), address);
		}
		s->block_address = begin;
		at = address - begin;
	}
	*ret_word = s->block[(at >> 3) & (UNWIND_BLOCK_WORDS - 1)];
	return 0;
}

/*
 * What is recorded of a frame that is not the innermost one. Its code is looked up one byte before
 * that, where a return address has its call; interrupted code has none and is recorded a byte
 * further on.
 */
UNWIND_INLINE __u64 unwind_recorded(const struct unwind_state *s)
{
	return s->pc + !s->is_return;
}

/* What has_own is in the caller of this frame. */
UNWIND_INLINE __u64 unwind_callers_own(const struct unwind_state *s)
{
	return (s->has_own & 1) << 1;
}

/* Moves to the caller. Returns an enum abi_unwind_end. */
UNWIND_INLINE int unwind_to(struct unwind_state *s, __u64 pc, __u64 sp, __u64 fp)
{
	if (pc < UNWIND_MIN_CODE || pc >> UNWIND_CODE_BITS)
		return ABI_UNWIND_BAD_REGISTER;
	s->pc = pc;
	s->sp = sp;
	s->fp = fp;
	s->lr = 0;
	s->kept[ABI_KEPT_R12] = 0;
	s->kept[ABI_KEPT_RBX] = 0;
	s->has_own = 0;
	s->is_return = 1;
	return ABI_UNWIND_GOES_ON;
}
