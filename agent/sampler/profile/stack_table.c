/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/stack_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/intern.h"

enum {
	MAX_STACKS = 1 << 24,
	FIRST_SLOTS = 256,
	MAX_STORED_FRAMES = UINT16_MAX,
};

void stack_table_init(struct stack_table *t, size_t limit_bytes)
{
	*t = (struct stack_table){ 0 };
	arena_init(&t->frames, limit_bytes);
}

void stack_table_deinit(struct stack_table *t)
{
	free(t->items);
	free(t->slots);
	arena_deinit(&t->frames);
}

static uint64_t stack_hash(const struct profile_stack *stack)
{
	uint64_t hash = hash_bytes(stack->frames, stack->frame_count * sizeof(*stack->frames));

	hash ^= ((uint64_t)stack->kernel_count << 32 | stack->flags) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static bool stack_table_is_same(
	const struct stored_stack *stored, const struct profile_stack *stack, uint64_t hash)
{
	return stored->hash == hash && stored->frame_count == stack->frame_count &&
	       stored->kernel_count == stack->kernel_count && stored->flags == stack->flags &&
	       (stack->frame_count == 0 || !memcmp(stored->frames, stack->frames,
						   stack->frame_count * sizeof(*stack->frames)));
}

/* The slot of this stack, or the free one where it would go. There is always a free one. */
static uint32_t *stack_table_find_slot(
	const struct stack_table *t, const struct profile_stack *stack, uint64_t hash)
{
	size_t i = hash & (t->slot_count - 1);

	while (t->slots[i] && !stack_table_is_same(&t->items[t->slots[i] - 1], stack, hash))
		i = (i + 1) & (t->slot_count - 1);
	return &t->slots[i];
}

static int stack_table_grow_slots(struct stack_table *t)
{
	size_t slot_count = t->slot_count ? t->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t number = 0; number < t->count; number++) {
		size_t i = t->items[number].hash & (slot_count - 1);

		while (slots[i])
			i = (i + 1) & (slot_count - 1);
		slots[i] = (uint32_t)number + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->slot_count = slot_count;
	return 0;
}

static int store(struct stack_table *t, const struct profile_stack *stack, uint64_t hash)
{
	size_t size = stack->frame_count * sizeof(*stack->frames);
	struct profile_frame *frames = NULL;
	int err = array_reserve(t->items, t->capacity, t->count + 1, MAX_STACKS);

	if (err)
		return err;
	if (size > 0) {
		frames = arena_alloc(&t->frames, size);
		if (!frames)
			return t->frames.error;
		memcpy(frames, stack->frames, size);
	}
	t->items[t->count++] = (struct stored_stack){ .frames = frames,
		.hash = hash,
		.frame_count = (uint16_t)stack->frame_count,
		.kernel_count = (uint16_t)stack->kernel_count,
		.flags = stack->flags };
	return 0;
}

int stack_table_get(struct stack_table *t, const struct profile_stack *stack, size_t limit_bytes,
	uint32_t *ret_number)
{
	uint64_t hash = stack_hash(stack);
	uint32_t *slot;
	int err;

	if (stack->frame_count > MAX_STORED_FRAMES || stack->kernel_count > stack->frame_count)
		return -EINVAL;
	if ((t->count + 1) * 4 > t->slot_count * 3) {
		err = stack_table_grow_slots(t);
		if (err)
			return err;
	}
	slot = stack_table_find_slot(t, stack, hash);
	if (*slot == 0) {
		if (stack_table_bytes(t) >= limit_bytes)
			return -E2BIG;
		err = store(t, stack, hash);
		if (err)
			return err;
		*slot = (uint32_t)t->count;
	}
	*ret_number = *slot - 1;
	return 0;
}

struct profile_stack stack_table_at(const struct stack_table *t, uint32_t number)
{
	const struct stored_stack *stored;

	if (number >= t->count)
		return (struct profile_stack){ 0 };
	stored = &t->items[number];
	return (struct profile_stack){ .frames = stored->frames,
		.frame_count = stored->frame_count,
		.kernel_count = stored->kernel_count,
		.flags = stored->flags };
}

size_t stack_table_bytes(const struct stack_table *t)
{
	return t->capacity * sizeof(*t->items) + t->slot_count * sizeof(*t->slots) +
	       t->frames.total_bytes;
}
