/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/sample_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/profile/sample_type.h"
#include "base/array.h"
#include "base/intern.h"

enum { FIRST_SLOTS = 256 };

void sample_table_init(struct sample_table *t)
{
	*t = (struct sample_table){ 0 };
}

void sample_table_deinit(struct sample_table *t)
{
	free(t->items);
	free(t->slots);
}

static uint64_t sample_hash(const struct profile_sample *s)
{
	const uint64_t words[] = { (uint64_t)s->process << 32 | s->stack,
		(uint64_t)s->type << 32 | s->flags, sample_labels_hash(s),
		(uint64_t)s->origin << 32 | s->fiber };

	return hash_bytes(words, sizeof(words));
}

static bool samples_are_equal(const struct profile_sample *a, const struct profile_sample *b)
{
	return a->stack == b->stack && a->process == b->process && a->flags == b->flags &&
	       a->type == b->type && a->fiber == b->fiber && a->origin == b->origin &&
	       sample_labels_equal(a, b);
}

static uint32_t *sample_table_find_slot(
	const struct sample_table *t, const struct profile_sample *sample)
{
	size_t i = sample_hash(sample) & (t->slot_count - 1);

	while (t->slots[i] && !samples_are_equal(&t->items[t->slots[i] - 1], sample))
		i = (i + 1) & (t->slot_count - 1);
	return &t->slots[i];
}

static void sample_table_fill_slots(
	const struct sample_table *t, uint32_t *slots, size_t slot_count)
{
	for (size_t number = 0; number < t->count; number++) {
		size_t i = sample_hash(&t->items[number]) & (slot_count - 1);

		while (slots[i])
			i = (i + 1) & (slot_count - 1);
		slots[i] = (uint32_t)number + 1;
	}
}

static int sample_table_grow_slots(struct sample_table *t)
{
	size_t slot_count = t->slot_count ? t->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	sample_table_fill_slots(t, slots, slot_count);
	free(t->slots);
	t->slots = slots;
	t->slot_count = slot_count;
	return 0;
}

/* How many samples LIMIT_BYTES hold: each is stored once and has a share of the slots. */
static size_t most_samples(size_t limit_bytes)
{
	return limit_bytes / (sizeof(struct profile_sample) + 2 * sizeof(uint32_t));
}

int sample_table_add(
	struct sample_table *t, const struct profile_sample *sample, size_t limit_bytes)
{
	uint32_t *slot;
	int err;

	if ((t->count + 1) * 4 > t->slot_count * 3) {
		err = sample_table_grow_slots(t);
		if (err)
			return err;
	}
	slot = sample_table_find_slot(t, sample);
	if (*slot == 0) {
		err = array_reserve(t->items, t->capacity, t->count + 1, most_samples(limit_bytes));
		if (err)
			return err;
		t->items[t->count] = *sample;
		*slot = (uint32_t)++t->count;
	} else {
		t->items[*slot - 1].count += sample->count;
		t->items[*slot - 1].weight += sample->weight;
	}
	t->total_count += sample->count;
	if (sample->type == SAMPLE_TYPE_TICKS)
		t->tick_count += sample->count;
	return 0;
}

uint64_t sample_table_keep(struct sample_table *t,
	bool (*keep)(void *context, const struct profile_sample *sample), void *context)
{
	const uint64_t before = t->total_count;
	size_t kept = 0;

	for (size_t number = 0; number < t->count; number++) {
		const struct profile_sample *sample = &t->items[number];

		if (keep(context, sample)) {
			t->items[kept++] = *sample;
			continue;
		}
		t->total_count -= sample->count;
		if (sample->type == SAMPLE_TYPE_TICKS)
			t->tick_count -= sample->count;
	}
	if (kept == t->count)
		return 0;
	t->count = kept;
	memset(t->slots, 0, t->slot_count * sizeof(*t->slots));
	sample_table_fill_slots(t, t->slots, t->slot_count);
	return before - t->total_count;
}

size_t sample_table_bytes(const struct sample_table *t)
{
	return t->capacity * sizeof(*t->items) + t->slot_count * sizeof(*t->slots);
}
