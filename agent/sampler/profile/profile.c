/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/profile.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/sampler/profile/fiber_table.h"
#include "agent/sampler/profile/raw_stacks.h"
#include "agent/sampler/profile/sample_table.h"
#include "agent/sampler/profile/stack_cache.h"
#include "agent/sampler/profile/stack_table.h"

struct profile {
	size_t limit_bytes;
	struct raw_stacks raw;
	struct stack_table stacks;
	struct stack_cache cache;
	struct fiber_table fibers;
	struct sample_table samples;
};

int profile_create(size_t limit_bytes, struct profile **ret_profile)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->limit_bytes = limit_bytes;
	raw_stacks_init(&p->raw, limit_bytes);
	stack_table_init(&p->stacks, limit_bytes);
	stack_cache_init(&p->cache);
	fiber_table_init(&p->fibers);
	sample_table_init(&p->samples);
	*ret_profile = p;
	return 0;
}

void profile_destroy(struct profile *p)
{
	if (!p)
		return;
	raw_stacks_deinit(&p->raw);
	stack_table_deinit(&p->stacks);
	stack_cache_deinit(&p->cache);
	fiber_table_deinit(&p->fibers);
	sample_table_deinit(&p->samples);
	free(p);
}

size_t profile_bytes(const struct profile *p)
{
	return sizeof(*p) + raw_stacks_bytes(&p->raw) + stack_table_bytes(&p->stacks) +
	       stack_cache_bytes(&p->cache) + fiber_table_bytes(&p->fibers) +
	       sample_table_bytes(&p->samples);
}

/* All parts share one limit. Returns the size to which a part of PART_BYTES may grow. */
static size_t room_for(const struct profile *p, size_t part_bytes)
{
	size_t others = profile_bytes(p) - part_bytes;

	return others < p->limit_bytes ? p->limit_bytes - others : 0;
}

int profile_put_raw(struct profile *p, const struct abi_stack *stack)
{
	return raw_stacks_put(&p->raw, stack, room_for(p, raw_stacks_bytes(&p->raw)));
}

const struct abi_stack *profile_get_raw(const struct profile *p, uint32_t window, uint64_t id)
{
	const struct abi_stack *stack = raw_stacks_get(&p->raw, window, id);

	return stack && stack->kind == ABI_STACK ? stack : NULL;
}

/* Both kinds of records have the same head. */
const struct abi_fiber_facts *profile_get_raw_facts(
	const struct profile *p, uint32_t window, uint64_t id)
{
	const struct abi_stack *stack = raw_stacks_get(&p->raw, window, id);

	if (!stack || stack->kind != ABI_FIBER_FACTS ||
		stack->frame_count < ABI_FIBER_CONTENT_HEAD_WORDS)
		return NULL;
	return (const struct abi_fiber_facts *)stack;
}

void profile_drop_raw(struct profile *p, uint32_t window)
{
	raw_stacks_drop(&p->raw, window);
}

int profile_stack(struct profile *p, const struct profile_stack *stack, uint32_t *ret_stack)
{
	size_t room = room_for(p, stack_table_bytes(&p->stacks));

	return stack_table_get(&p->stacks, stack, room, ret_stack);
}

bool profile_cached_stack(const struct profile *p, uint64_t key_a, uint64_t key_b, uint64_t context,
	uint32_t *ret_stack)
{
	const struct stack_key key = { .user = key_a, .kernel = key_b, .context = context };

	return stack_cache_get(&p->cache, &key, ret_stack);
}

int profile_cache_stack(
	struct profile *p, uint64_t key_a, uint64_t key_b, uint64_t context, uint32_t stack)
{
	const struct stack_key key = { .user = key_a, .kernel = key_b, .context = context };

	return stack_cache_set(&p->cache, &key, stack, room_for(p, stack_cache_bytes(&p->cache)));
}

int profile_fiber(struct profile *p, const struct abi_fiber_facts *facts, uint32_t *ret_fiber,
	uint32_t *ret_losses)
{
	size_t room = room_for(p, fiber_table_bytes(&p->fibers));

	return fiber_table_get(&p->fibers, facts, room, ret_fiber, ret_losses);
}

static int profile_copy_stack(
	struct profile *p, const struct profile *from, uint32_t number, uint32_t *ret_stack)
{
	const struct profile_stack stack = profile_stack_at(from, number);

	return profile_stack(p, &stack, ret_stack);
}

int profile_adopt(struct profile *p, const struct profile *from, struct profile_sample *sample)
{
	struct profile_sample s = *sample;
	size_t room = room_for(p, fiber_table_bytes(&p->fibers));
	int err = 0;

	if (p == from)
		return 0;
	err = profile_copy_stack(p, from, sample->stack, &s.stack);
	if (!err)
		err = fiber_table_copy(&p->fibers, &from->fibers, sample->fiber, room, &s.fiber);
	if (!err && sample->origin)
		err = profile_copy_stack(p, from, sample->origin - 1, &s.origin);
	if (err)
		return err;
	s.origin += sample->origin != 0;
	*sample = s;
	return 0;
}

int profile_add(struct profile *p, const struct profile_sample *sample)
{
	if (sample->stack >= p->stacks.count || sample->origin > p->stacks.count ||
		sample->fiber > fiber_table_count(&p->fibers))
		return -EINVAL;
	return sample_table_add(&p->samples, sample, room_for(p, sample_table_bytes(&p->samples)));
}

uint64_t profile_keep(struct profile *p,
	bool (*keep)(void *context, const struct profile_sample *sample), void *context)
{
	return sample_table_keep(&p->samples, keep, context);
}

size_t profile_sample_count(const struct profile *p)
{
	return p->samples.count;
}

const struct profile_sample *profile_sample_at(const struct profile *p, size_t number)
{
	return number < p->samples.count ? &p->samples.items[number] : NULL;
}

struct profile_fiber profile_fiber_at(const struct profile *p, uint32_t number)
{
	return fiber_table_at(&p->fibers, number);
}

size_t profile_stack_count(const struct profile *p)
{
	return p->stacks.count;
}

struct profile_stack profile_stack_at(const struct profile *p, uint32_t number)
{
	return stack_table_at(&p->stacks, number);
}

uint64_t profile_total_count(const struct profile *p)
{
	return p->samples.total_count;
}

uint64_t profile_tick_count(const struct profile *p)
{
	return p->samples.tick_count;
}
