/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Caches which stack a pair of raw stacks was resolved to, so that the same raw stacks in the same
 * process are not resolved again. An entry that does not fit is not kept.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack_key {
	uint64_t user, kernel; /* raw ids */
	uint64_t context; /* what they were resolved with */
};

struct stack_cache_slot;

struct stack_cache {
	struct stack_cache_slot *slots;
	size_t slot_count; /* a power of two, or 0 */
	size_t count;
};

void stack_cache_init(struct stack_cache *c);
void stack_cache_deinit(struct stack_cache *c);
bool stack_cache_get(const struct stack_cache *c, const struct stack_key *key, uint32_t *ret_stack);
/* Returns -E2BIG if the cache would take more than LIMIT_BYTES. */
int stack_cache_set(
	struct stack_cache *c, const struct stack_key *key, uint32_t stack, size_t limit_bytes);
size_t stack_cache_bytes(const struct stack_cache *c);
