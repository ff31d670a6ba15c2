/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The 64-bit identity of a stack: two multiplications and a rotation a frame, over all frames, then
 * the count and the flags, then a full avalanche. With 2^20 different stacks in a window the odds
 * of any two sharing an id are 1 in 2^25. Also compiled into the unit tests.
 */
#include "bpf/abi/sample.h"

#define STACK_HASH_MUL_1 0x9e3779b185ebca87ULL
#define STACK_HASH_MUL_2 0xc2b2ae3d27d4eb4fULL
#define STACK_HASH_MUL_3 0x165667b19e3779f9ULL

static inline __attribute__((always_inline)) abi_u64 stack_hash_frame(abi_u64 hash, abi_u64 frame)
{
	hash ^= frame * STACK_HASH_MUL_2;
	hash = (hash << 29) | (hash >> 35);
	return hash * STACK_HASH_MUL_1;
}

static inline __attribute__((always_inline)) abi_u64 stack_hash_end(
	abi_u64 hash, abi_u32 frame_count, abi_u32 flags)
{
	hash = stack_hash_frame(hash, ((abi_u64)flags << 32) | frame_count);
	hash ^= hash >> 33;
	hash *= STACK_HASH_MUL_2;
	hash ^= hash >> 29;
	hash *= STACK_HASH_MUL_3;
	hash ^= hash >> 32;
	return hash ? hash : 1;
}

/* The tag for ID in WINDOW in the table of shipped stacks; never 0, which is an empty slot. */
static inline __attribute__((always_inline)) abi_u64 stack_tag(abi_u64 id, abi_u32 window)
{
	abi_u64 tag = id ^ (window * STACK_HASH_MUL_3);

	return tag ? tag : 1;
}
