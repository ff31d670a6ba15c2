/* SPDX-License-Identifier: Apache-2.0 */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/array.h"

struct intern_entry {
	const char *text;
	uint64_t hash;
	uint32_t size;
};

struct intern_slot {
	uint32_t number; /* of the entry + 1; 0 = free */
	uint32_t hash; /* its upper half: other entries are mostly passed without being read */
};

uint64_t hash_bytes(const void *bytes, size_t size)
{
	return XXH3_64bits(bytes, size);
}

int intern_init(struct intern *in, size_t limit, size_t limit_bytes)
{
	uint32_t empty;
	int err;

	*in = (struct intern){ .limit = limit };
	arena_init(&in->bytes, limit_bytes);
	err = intern_bytes(in, "", 0, &empty);
	if (err)
		intern_deinit(in);
	return err;
}

void intern_deinit(struct intern *in)
{
	free(in->entries);
	free(in->slots);
	arena_deinit(&in->bytes);
	*in = (struct intern){ .limit = in->limit };
}

static bool intern_is(const struct intern_entry *e, const void *bytes, size_t size)
{
	return e->size == size && !memcmp(e->text, bytes, size);
}

static size_t intern_find(const struct intern *in, uint64_t hash, const void *bytes, size_t size)
{
	const uint32_t tag = (uint32_t)(hash >> 32);
	size_t i = (size_t)hash & (in->slot_count - 1);

	while (in->slots[i].number) {
		if (in->slots[i].hash == tag &&
			intern_is(&in->entries[in->slots[i].number - 1], bytes, size))
			break;
		i = (i + 1) & (in->slot_count - 1);
	}
	return i;
}

static int intern_grow_slots(struct intern *in)
{
	size_t slot_count = in->slot_count ? in->slot_count * 2 : 64;
	struct intern_slot *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t n = 0; n < in->count; n++) {
		const uint64_t hash = in->entries[n].hash;
		size_t i = (size_t)hash & (slot_count - 1);

		while (slots[i].number)
			i = (i + 1) & (slot_count - 1);
		slots[i] = (struct intern_slot){ (uint32_t)n + 1, (uint32_t)(hash >> 32) };
	}
	free(in->slots);
	in->slots = slots;
	in->slot_count = slot_count;
	return 0;
}

static int intern_add(struct intern *in, size_t slot, uint64_t hash, const void *bytes, size_t size)
{
	int err = array_reserve(in->entries, in->capacity, in->count + 1, in->limit);
	char *copy;

	if (err)
		return err;
	copy = arena_strndup(&in->bytes, bytes, size);
	if (!copy)
		return in->bytes.error;
	in->entries[in->count] =
		(struct intern_entry){ .text = copy, .hash = hash, .size = (uint32_t)size };
	in->slots[slot] = (struct intern_slot){ (uint32_t)++in->count, (uint32_t)(hash >> 32) };
	return 0;
}

int intern_bytes(struct intern *in, const void *bytes, size_t size, uint32_t *ret_number)
{
	uint64_t hash;
	size_t slot;
	int err = 0;

	if (size > UINT32_MAX / 2)
		return -E2BIG;
	if (in->next < in->count && intern_is(&in->entries[in->next], bytes, size)) {
		*ret_number = in->next++;
		return 0;
	}
	if ((in->count + 1) * 3 > in->slot_count * 2)
		err = intern_grow_slots(in);
	if (err)
		return err;
	hash = hash_bytes(bytes, size);
	slot = intern_find(in, hash, bytes, size);
	if (!in->slots[slot].number)
		err = intern_add(in, slot, hash, bytes, size);
	if (err)
		return err;
	*ret_number = in->slots[slot].number - 1;
	in->next = in->slots[slot].number;
	return 0;
}

bool intern_known(const struct intern *in, const void *bytes, size_t size, uint32_t *ret_number)
{
	size_t slot;

	if (!in->slot_count)
		return false;
	slot = intern_find(in, hash_bytes(bytes, size), bytes, size);
	if (!in->slots[slot].number)
		return false;
	*ret_number = in->slots[slot].number - 1;
	return true;
}

int intern_string(struct intern *in, const char *text, uint32_t *ret_number)
{
	return intern_bytes(in, text, strlen(text), ret_number);
}

const char *intern_text(const struct intern *in, uint32_t number)
{
	return number < in->count ? in->entries[number].text : "";
}

size_t intern_size(const struct intern *in, uint32_t number)
{
	return number < in->count ? in->entries[number].size : 0;
}
