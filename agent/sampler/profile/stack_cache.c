/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/stack_cache.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 256 };

struct stack_cache_slot {
	struct stack_key key;
	uint32_t stack;
	bool used;
};

void stack_cache_init(struct stack_cache *c)
{
	*c = (struct stack_cache){ 0 };
}

void stack_cache_deinit(struct stack_cache *c)
{
	free(c->slots);
}

static bool stack_cache_is_same(const struct stack_key *a, const struct stack_key *b)
{
	return a->user == b->user && a->kernel == b->kernel && a->context == b->context;
}

/* The raw ids are hashes already; they only have to be kept from cancelling each other. */
static uint64_t hash_of(const struct stack_key *key)
{
	uint64_t hash = key->user * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ key->kernel ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	hash = (hash ^ key->context ^ hash >> 32) * UINT64_C(0x94d049bb133111eb);
	return hash ^ hash >> 31;
}

static struct stack_cache_slot *stack_cache_find_slot(
	const struct stack_cache *c, const struct stack_key *key)
{
	size_t i = hash_of(key) & (c->slot_count - 1);

	while (c->slots[i].used && !stack_cache_is_same(&c->slots[i].key, key))
		i = (i + 1) & (c->slot_count - 1);
	return &c->slots[i];
}

bool stack_cache_get(const struct stack_cache *c, const struct stack_key *key, uint32_t *ret_stack)
{
	const struct stack_cache_slot *slot;

	if (c->count == 0)
		return false;
	slot = stack_cache_find_slot(c, key);
	if (!slot->used)
		return false;
	*ret_stack = slot->stack;
	return true;
}

static int stack_cache_grow(struct stack_cache *c, size_t limit_bytes)
{
	struct stack_cache bigger = { .count = c->count };

	bigger.slot_count = c->slot_count ? c->slot_count * 2 : FIRST_SLOTS;
	if (stack_cache_bytes(&bigger) > limit_bytes)
		return -E2BIG;
	bigger.slots = calloc(bigger.slot_count, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < c->slot_count; i++) {
		if (c->slots[i].used)
			*stack_cache_find_slot(&bigger, &c->slots[i].key) = c->slots[i];
	}
	free(c->slots);
	*c = bigger;
	return 0;
}

int stack_cache_set(
	struct stack_cache *c, const struct stack_key *key, uint32_t stack, size_t limit_bytes)
{
	struct stack_cache_slot *slot;
	int err;

	if ((c->count + 1) * 4 > c->slot_count * 3) {
		err = stack_cache_grow(c, limit_bytes);
		if (err)
			return err;
	}
	slot = stack_cache_find_slot(c, key);
	if (!slot->used)
		c->count++;
	*slot = (struct stack_cache_slot){ .key = *key, .stack = stack, .used = true };
	return 0;
}

size_t stack_cache_bytes(const struct stack_cache *c)
{
	return c->slot_count * sizeof(struct stack_cache_slot);
}
