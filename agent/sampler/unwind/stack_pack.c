/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format, per group of four words: a byte with two bits for each word (enum how, the first word's
 * lowest), then the bytes that these call for. A table of 256 places, hashed by all but the lowest
 * 16 bits, holds the last word of each place.
 */
#include "agent/sampler/unwind/stack_pack.h"

#include <string.h>

#include "base/cursor.h"

enum {
	WORD_BYTES = sizeof(uint64_t),
	GROUP_WORDS = 4,
	PLACES = 256, /* the number of a place is one byte */
	NEAR_BITS = 16,
};

enum how {
	HOW_ZERO = 0,
	HOW_SAME = 1, /* as the place's word; followed by the place */
	HOW_NEAR = 2, /* its lowest 16 bits differ; followed by the place and these bits */
	HOW_NEW = 3, /* followed by the word */
};

static size_t stack_pack_place_of(uint64_t word)
{
	return (size_t)(((word >> NEAR_BITS) * UINT64_C(0x9e3779b97f4a7c15)) >> 56);
}

static uint8_t *stack_pack_put(uint8_t *to, const void *bytes, size_t size)
{
	memcpy(to, bytes, size);
	return to + size;
}

static uint8_t *pack_word(uint64_t word, uint64_t places[PLACES], uint8_t *to, enum how *ret_how)
{
	uint8_t place = (uint8_t)stack_pack_place_of(word);
	uint64_t last = places[place];
	uint16_t low = (uint16_t)word;

	*ret_how = HOW_ZERO;
	if (!word)
		return to;
	places[place] = word;
	*ret_how = word == last ? HOW_SAME : HOW_NEAR;
	if (word >> NEAR_BITS != last >> NEAR_BITS) {
		*ret_how = HOW_NEW;
		return stack_pack_put(to, &word, sizeof(word));
	}
	*to++ = place;
	return word == last ? to : stack_pack_put(to, &low, sizeof(low));
}

size_t stack_pack(const uint8_t *bytes, size_t size, uint8_t *packed)
{
	uint64_t places[PLACES] = { 0 };
	uint8_t *to = packed, *group = NULL;

	for (size_t i = 0; i < size / WORD_BYTES; i++) {
		unsigned int shift = 2 * (i % GROUP_WORDS);
		uint64_t word;
		enum how how;

		if (!shift) {
			group = to++;
			*group = 0;
		}
		memcpy(&word, bytes + i * WORD_BYTES, sizeof(word));
		to = pack_word(word, places, to, &how);
		*group = (uint8_t)(*group | (unsigned int)how << shift);
	}
	return (size_t)(to - packed);
}

static uint64_t unpack_word(struct cursor *c, uint64_t places[PLACES], enum how how)
{
	uint64_t word;
	uint8_t place;

	if (how == HOW_ZERO)
		return 0;
	if (how == HOW_NEW) {
		word = cursor_u64(c);
		places[stack_pack_place_of(word)] = word;
		return word;
	}
	place = cursor_u8(c);
	if (how == HOW_NEAR)
		places[place] = (places[place] >> NEAR_BITS << NEAR_BITS) | cursor_u16(c);
	return places[place];
}

bool stack_unpack(const uint8_t *packed, size_t packed_size, uint8_t *bytes, size_t size)
{
	uint64_t places[PLACES] = { 0 };
	struct cursor c = cursor_over(packed, packed_size);
	uint8_t group = 0;

	for (size_t i = 0; i < size / WORD_BYTES; i++) {
		uint64_t word;

		if (i % GROUP_WORDS == 0)
			group = cursor_u8(&c);
		word = unpack_word(&c, places, group >> 2 * (i % GROUP_WORDS) & 3);
		memcpy(bytes + i * WORD_BYTES, &word, sizeof(word));
	}
	return !c.bad && !cursor_left(&c);
}
