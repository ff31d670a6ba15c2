/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/arguments/argument_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

/* ---- checking ------------------------------------------------------------------------------- */

static bool plan_fetch_is_sound(
	const struct argument_plan *plan, const struct abi_fetch *fetch, uint32_t number)
{
	if (fetch->kind > ABI_FETCH_GO_TYPE_NAME || fetch->origin >= ABI_FETCH_REGISTERS ||
		fetch->step_count > ABI_FETCH_STEPS || !fetch->size ||
		fetch->size > ABI_FETCH_VALUE_BYTES || fetch->at % 8 ||
		fetch->at > plan->fetched_bytes || fetch->size > plan->fetched_bytes - fetch->at)
		return false;
	/* A register is fetched as a whole. */
	if (fetch->kind == ABI_FETCH_PLAIN && !fetch->step_count)
		return plan->fetched_bytes - fetch->at >= 8;
	if (fetch->kind != ABI_FETCH_ARRAY)
		return true;
	return fetch->element_bytes && fetch->length_of < number &&
	       fetch->length_at == argument_plan_fetches(plan)[fetch->length_of].at;
}

static bool plan_item_is_sound(const struct argument_plan *plan, const struct argument *item)
{
	bool has_bytes = item->kind != ARGUMENT_ARRAY;

	if (item->kind >= ARGUMENT_KINDS || item->depth > ARGUMENT_MAX_DEPTH ||
		(has_bytes && item->skip + item->size > ABI_FETCH_VALUE_BYTES) ||
		item->enumerators >= plan->names_bytes || item->bit_off > 7 ||
		item->bit_size > 64 || item->name >= plan->names_bytes ||
		item->type >= plan->names_bytes)
		return false;
	return (item->first == ARGUMENT_NO_FETCH || item->first < plan->fetch_count) &&
	       (item->second == ARGUMENT_NO_FETCH || item->second < plan->fetch_count);
}

static bool plan_names_are_clean(const struct argument_plan *plan)
{
	const char *names = argument_plan_name(plan, 0), *end = names + plan->names_bytes;

	if (!plan->names_bytes || names[0] || end[-1])
		return false;
	for (const char *name = names; name < end; name += strlen(name) + 1)
		if (!utf8_is_clean(name, strlen(name)))
			return false;
	return true;
}

bool argument_plan_check(const void *bytes, size_t size)
{
	const struct argument_plan *plan = bytes;

	if (size < sizeof(*plan) || plan->magic != ARGUMENT_PLAN_MAGIC ||
		plan->fetch_count > ABI_FETCHES || plan->count > ARGUMENTS_MAX ||
		plan->names_bytes > ARGUMENT_NAMES_BYTES ||
		plan->fetched_bytes > ABI_FETCHED_BYTES || argument_plan_size(plan) != size ||
		!plan_names_are_clean(plan))
		return false;
	for (uint32_t i = 0; i < plan->fetch_count; i++)
		if (!plan_fetch_is_sound(plan, &argument_plan_fetches(plan)[i], i))
			return false;
	for (uint32_t i = 0; i < plan->count; i++)
		if (!plan_item_is_sound(plan, &argument_plan_items(plan)[i]))
			return false;
	return true;
}

/* ---- making --------------------------------------------------------------------------------- */

void argument_builder_init(struct argument_builder *b, uint32_t flags)
{
	b->fetch_count = b->count = b->fetched_bytes = 0;
	b->names[0] = 0;
	b->names_bytes = 1;
	b->flags = flags;
}

uint32_t argument_builder_room(const struct argument_builder *b)
{
	return ABI_FETCHED_BYTES - b->fetched_bytes;
}

uint8_t argument_builder_fetch(struct argument_builder *b, const struct abi_fetch *fetch)
{
	uint32_t bytes = (fetch->size + 7) & ~7U;

	if (b->fetch_count == ABI_FETCHES || fetch->step_count > ABI_FETCH_STEPS || !fetch->size ||
		fetch->size > ABI_FETCH_VALUE_BYTES || bytes > argument_builder_room(b))
		return ARGUMENT_NO_FETCH;
	b->fetches[b->fetch_count] = *fetch;
	b->fetches[b->fetch_count].at = b->fetched_bytes;
	b->fetched_bytes += bytes;
	return (uint8_t)b->fetch_count++;
}

uint32_t argument_builder_name(struct argument_builder *b, const char *name, size_t size)
{
	uint32_t at = b->names_bytes;

	if (!size || size >= sizeof(b->names) - at)
		return 0;
	memcpy(b->names + at, name, size);
	b->names[at + size] = 0;
	utf8_clean(b->names + at, size);
	b->names_bytes += (uint32_t)size + 1;
	return at;
}

struct argument *argument_builder_add(struct argument_builder *b, uint8_t depth)
{
	struct argument *item;

	if (b->count == ARGUMENTS_MAX)
		return NULL;
	item = &b->items[b->count++];
	*item = (struct argument){
		.depth = depth,
		.first = ARGUMENT_NO_FETCH,
		.second = ARGUMENT_NO_FETCH,
	};
	return item;
}

struct argument_plan *argument_builder_finish(const struct argument_builder *b)
{
	const struct argument_plan head = {
		.magic = ARGUMENT_PLAN_MAGIC,
		.flags = b->flags,
		.fetch_count = b->fetch_count,
		.count = b->count,
		.names_bytes = b->names_bytes,
		.fetched_bytes = b->fetched_bytes,
	};
	struct argument_plan *plan = malloc(argument_plan_size(&head));

	if (!plan)
		return NULL;
	*plan = head;
	memcpy((void *)argument_plan_fetches(plan), b->fetches,
		b->fetch_count * sizeof(b->fetches[0]));
	memcpy((void *)argument_plan_items(plan), b->items, b->count * sizeof(b->items[0]));
	memcpy((void *)argument_plan_name(plan, 0), b->names, b->names_bytes);
	return plan;
}
