/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pieces of deep stacks (struct abi_chunk), to which unfinished samples refer by id. Those that no
 * waiting walk holds are kept for a few seconds: the kernel ships a chunk again after one.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "bpf/abi/sample.h"

struct stack_chunk {
	struct stack_chunk *next;
	uint64_t id;
	uint32_t refs;
	uint32_t tick; /* when it arrived last */
	uint8_t bytes[ABI_UNFINISHED_CHUNK_BYTES];
};

struct stack_chunks {
	struct map by_id; /* id → struct stack_chunk */
	struct stack_chunk *all;
	uint32_t tick;
};

/* At most LIMIT_BYTES of stack are kept. */
void stack_chunks_init(struct stack_chunks *c, size_t limit_bytes);
void stack_chunks_deinit(struct stack_chunks *c);
/* Keeps CHUNK. Returns -E2BIG over the limit, or -ENOMEM. */
int stack_chunks_add(struct stack_chunks *c, const struct abi_chunk *chunk);
/* Returns NULL if there is none with ID. Valid until the next tick, or until it is unreferenced. */
struct stack_chunk *stack_chunks_get(const struct stack_chunks *c, uint64_t id);
void stack_chunk_ref(struct stack_chunk *chunk);
void stack_chunk_unref(struct stack_chunk *chunk);
/* Call it about once a second. */
void stack_chunks_tick(struct stack_chunks *c);
