/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One stack frame, 16 bytes whatever its kind. The top byte of `module` is the kind:
 *
 *   kind             address                      module           flags
 *   native           file offset in the module;   its number       PROFILE_FRAME_RETURN, _FUNCTION
 *                    pc in memory without a file
 *   native, NONE     pc that no mapping held      0                PROFILE_FRAME_RETURN
 *   kernel           kaddr                        UINT32_MAX       PROFILE_FRAME_RETURN, tenant
 *   runtime k        code object, cookie          k, cookie        position
 *
 * A runtime is an interpreter or a compiler inside of the process: its frame is identified by an
 * object in the process's memory, a position in that object and a cookie (bpf/abi/frame.h). Equal
 * frames of different processes mean different things.
 *
 * Frames are compared and hashed by all of their bytes.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/frame.h"

enum profile_frame_kind {
	PROFILE_KIND_NATIVE = 0,
	PROFILE_KIND_RUNTIME =
		1, /* from here on, up to ABI_FRAME_KIND_MAX: as in bpf/abi/frame.h */
	PROFILE_KIND_KERNEL = 255,
};

enum profile_frame_module {
	PROFILE_MODULE_NONE = 0,
	PROFILE_MODULE_KERNEL = UINT32_MAX,
};

enum {
	PROFILE_KIND_SHIFT = 24, /* of the kind in `module`; module numbers stay below it */
	/*
	 * A return address: the call is one byte before. Of kernel frames all but the one where the
	 * walk began have it, until a report knows better (symbolize_is_kernel_entry()).
	 */
	PROFILE_FRAME_RETURN = 1,
	/* Native frames: stands for its function, without what is inlined at the address. */
	PROFILE_FRAME_FUNCTION = 2,
	/*
	 * Kernel frames, from this bit on: the tenant, that is, which of the symbols that had the
	 * address one after another; 0 = none.
	 */
	PROFILE_FRAME_TENANT_SHIFT = 1,
	PROFILE_COOKIE_LOW_BITS = 8, /* that fit above the 56 bits of an address */
};

struct profile_frame {
	uint64_t address;
	uint32_t module;
	uint32_t flags;
};

_Static_assert(sizeof(struct profile_frame) == 16, "a window holds hundreds of thousands of them");
_Static_assert(ABI_FRAME_ADDRESS_BITS + PROFILE_COOKIE_LOW_BITS == 64 &&
		       PROFILE_COOKIE_LOW_BITS + PROFILE_KIND_SHIFT == 32,
	"address, cookie and kind fill two words");

static inline enum profile_frame_kind profile_frame_kind(const struct profile_frame *frame)
{
	return (enum profile_frame_kind)(frame->module >> PROFILE_KIND_SHIFT);
}

static inline bool profile_frame_is_runtime(const struct profile_frame *frame)
{
	return profile_frame_kind(frame) != PROFILE_KIND_NATIVE &&
	       profile_frame_kind(frame) != PROFILE_KIND_KERNEL;
}

/* For callers, the address inside the call: the return address may be in the next function. */
static inline uint64_t profile_frame_call(const struct profile_frame *frame)
{
	bool caller = frame->flags & PROFILE_FRAME_RETURN;

	return caller && frame->address ? frame->address - 1 : frame->address;
}

/* Of a kernel frame: which symbol had the address at the time of the sample. */
static inline uint32_t profile_frame_tenant(const struct profile_frame *frame)
{
	return frame->flags >> PROFILE_FRAME_TENANT_SHIFT;
}

/* Converts a runtime's frame from BPF's form. */
static inline struct profile_frame profile_runtime_frame(const struct abi_frame *frame)
{
	assert(frame->kind >= PROFILE_KIND_RUNTIME && frame->kind <= ABI_FRAME_KIND_MAX);
	return (struct profile_frame){
		.address = frame->address | (uint64_t)frame->cookie << ABI_FRAME_ADDRESS_BITS,
		.module = frame->kind << PROFILE_KIND_SHIFT |
			  frame->cookie >> PROFILE_COOKIE_LOW_BITS,
		.flags = frame->position,
	};
}

/* Converts a runtime's frame to BPF's form. */
static inline struct abi_frame profile_frame_of_runtime(const struct profile_frame *frame)
{
	const uint32_t cookie_high = frame->module & ((UINT32_C(1) << PROFILE_KIND_SHIFT) - 1);

	return (struct abi_frame){
		.address = frame->address & ((UINT64_C(1) << ABI_FRAME_ADDRESS_BITS) - 1),
		.kind = (uint32_t)profile_frame_kind(frame),
		.position = frame->flags,
		.cookie = cookie_high << PROFILE_COOKIE_LOW_BITS |
			  (uint32_t)(frame->address >> ABI_FRAME_ADDRESS_BITS),
	};
}
