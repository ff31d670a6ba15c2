/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The words of an abi_stack's frames. A native or kernel frame is one word, its pc. A frame of a
 * language runtime (an interpreter's own frame, code that it compiled) has no pc that says what it
 * is: it is named by a code object in the process and takes two words.
 *
 *   word 1:  kind << 57 | address of the code object
 *   word 2:  position in it << 32 | cookie
 *
 * User addresses have 56 bits at most (five levels of page tables), so the kind's bits are 0 in a
 * pc of user mode and all 1 in an address of the kernel's half. A walk by frame pointer may record
 * any word as a pc, though: only a stack with ABI_STACK_RUNTIME_FRAMES has frames of two words.
 *
 * What the position counts and what the cookie is made of is up to the kind. The cookie tells
 * whether the address still holds the object that was sampled: a garbage collector moves and reuses
 * memory before user space reads the names.
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
	abi_u64 address; /* the pc; of a runtime's frame: its code object */
	abi_u32 kind; /* ABI_FRAME_PC, or that of a runtime */
	abi_u32 position, cookie; /* 0 of a pc */
};

static inline abi_u32 abi_frame_kind(abi_u64 word)
{
	abi_u32 kind = (abi_u32)(word >> ABI_FRAME_KIND_SHIFT);

	return kind > ABI_FRAME_KIND_MAX ? ABI_FRAME_PC : kind;
}

/* Writes the words of FRAME, which is a runtime's. */
static inline void abi_frame_write(
	const struct abi_frame *frame, abi_u64 ret_words[ABI_FRAME_RUNTIME_WORDS])
{
	ret_words[0] = (abi_u64)frame->kind << ABI_FRAME_KIND_SHIFT |
		       (frame->address & ((1ULL << ABI_FRAME_ADDRESS_BITS) - 1));
	ret_words[1] = (abi_u64)frame->position << ABI_FRAME_POSITION_SHIFT | frame->cookie;
}

/*
 * Reads the frame that begins at word *AT of COUNT, and moves *AT behind it. FLAGS are the stack's.
 * False at the end, which may be in the middle of a frame that the depth limit cut.
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
