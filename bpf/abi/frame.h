/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Encoding of the frames of an abi_stack. A native or kernel frame is one word, its pc. The pc of a
 * language runtime's frame (an interpreted function, JIT code) does not identify it: such a frame
 * is identified by a code object in the process and takes two words.
 *
 *   word 1:  kind << 57 | address of the code object
 *   word 2:  position in it << 32 | cookie
 *
 * User addresses have 56 bits at most (five levels of page tables), so the kind's bits are 0 in a
 * user pc and all 1 in a kernel address. A frame-pointer walk may record any word as a pc, though,
 * so only stacks with ABI_STACK_RUNTIME_FRAMES have two-word frames.
 *
 * Each kind defines its position and cookie. The cookie shows whether the address still holds the
 * object that was sampled: a garbage collector may move objects and reuse memory before user space
 * reads the names.
 */
#include "bpf/abi/sample.h"

enum {
	ABI_FRAME_KIND_SHIFT = 57,
	ABI_FRAME_PC = 0, /* the kind of a native or kernel frame */
	ABI_FRAME_KIND_MAX = 126, /* 127 is the kernel's half of the address space */
	ABI_FRAME_ADDRESS_BITS = 56,
	ABI_FRAME_POSITION_SHIFT = 32,
	ABI_FRAME_RUNTIME_WORDS = 2,
};

struct abi_frame {
	abi_u64 address; /* the pc, or the code object of a runtime's frame */
	abi_u32 kind; /* ABI_FRAME_PC, or a runtime's */
	abi_u32 position, cookie; /* 0 for a pc */
};

static inline abi_u32 abi_frame_kind(abi_u64 word)
{
	abi_u32 kind = (abi_u32)(word >> ABI_FRAME_KIND_SHIFT);

	return kind > ABI_FRAME_KIND_MAX ? ABI_FRAME_PC : kind;
}

/* Encodes FRAME, which must be a runtime's. */
static inline void abi_frame_write(
	const struct abi_frame *frame, abi_u64 ret_words[ABI_FRAME_RUNTIME_WORDS])
{
	ret_words[0] = (abi_u64)frame->kind << ABI_FRAME_KIND_SHIFT |
		       (frame->address & ((1ULL << ABI_FRAME_ADDRESS_BITS) - 1));
	ret_words[1] = (abi_u64)frame->position << ABI_FRAME_POSITION_SHIFT | frame->cookie;
}

/*
 * Decodes the frame at word *AT of COUNT and moves *AT past it. FLAGS are the stack's. Returns 0 at
 * the end, which may be in the middle of a frame that the depth limit cut: *AT is then below COUNT.
 */
static inline int abi_frame_read(const abi_u64 *words, abi_u32 count, abi_u32 flags, abi_u32 *at,
	struct abi_frame *ret_frame)
{
	abi_u32 kind;

	if (*at >= count)
		return 0;
	kind = flags & ABI_STACK_RUNTIME_FRAMES ? abi_frame_kind(words[*at]) : ABI_FRAME_PC;
	if (kind == ABI_FRAME_PC) {
		*ret_frame = (struct abi_frame){ .address = words[(*at)++] };
		return 1;
	}
	if (count - *at < ABI_FRAME_RUNTIME_WORDS)
		return 0;
	*ret_frame = (struct abi_frame){
		.address = words[*at] & ((1ULL << ABI_FRAME_ADDRESS_BITS) - 1),
		.kind = kind,
		.position = (abi_u32)(words[*at + 1] >> ABI_FRAME_POSITION_SHIFT),
		.cookie = (abi_u32)words[*at + 1],
	};
	*at += ABI_FRAME_RUNTIME_WORDS;
	return 1;
}

/* How many of COUNT words are whole frames: all of them, unless the last frame was cut. */
static inline abi_u32 abi_frame_whole(const abi_u64 *words, abi_u32 count, abi_u32 flags)
{
	struct abi_frame frame;
	abi_u32 at = 0;

	if (!(flags & ABI_STACK_RUNTIME_FRAMES))
		return count;
	while (abi_frame_read(words, count, flags, &at, &frame))
		;
	return at;
}
