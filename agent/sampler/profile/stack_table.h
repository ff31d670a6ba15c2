/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Distinct resolved stacks, numbered from 0. */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"
#include "base/arena.h"

struct stored_stack {
	const struct profile_frame *frames;
	uint64_t hash;
	uint16_t frame_count, kernel_count;
	uint32_t flags;
};

struct stack_table {
	struct stored_stack *items;
	size_t count, capacity;
	uint32_t *slots; /* hash table of item number + 1 */
	size_t slot_count; /* a power of two, or 0 */
	struct arena frames;
};

void stack_table_init(struct stack_table *t, size_t limit_bytes);
void stack_table_deinit(struct stack_table *t);
/*
 * Returns the number of STACK, which is added if new; -E2BIG if the table takes LIMIT_BYTES
 * already.
 */
int stack_table_get(struct stack_table *t, const struct profile_stack *stack, size_t limit_bytes,
	uint32_t *ret_number);
struct profile_stack stack_table_at(const struct stack_table *t, uint32_t number);
size_t stack_table_bytes(const struct stack_table *t);
