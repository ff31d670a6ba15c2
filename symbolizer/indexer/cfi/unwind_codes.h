/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Chooses which changes of a page get a code (bpf/abi/unwind.h): greedily, those that save the most
 * nibbles. Any choice is valid for readers.
 */
#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"

enum { UNWIND_CODED_DISTANCES = 256 }; /* distances from here on have no code */

/* Changes of one kind at one distance from the change before. */
struct unwind_coded {
	uint32_t bits; /* the code or ABI_CHANGE_OTHER; after choosing, all but the number */
	uint16_t count; /* how often the change occurs */
	uint8_t nibbles; /* size of one change */
	uint8_t number_shift; /* position of the rule's number in `bits`, where they are 0 */
};

struct unwind_codes {
	uint16_t codes[ABI_UNWIND_CODES]; /* as in the page's header */
	uint32_t count;
	struct unwind_coded coded[ABI_CHANGE_KINDS][UNWIND_CODED_DISTANCES]; /* [][0]: not used */
	/* The distances that occur. */
	uint8_t distances[ABI_CHANGE_KINDS][UNWIND_CODED_DISTANCES];
	uint32_t distance_counts[ABI_CHANGE_KINDS];
};

/* Sets all counts to 0. */
void unwind_codes_init(struct unwind_codes *c);
/* Adds the first change of its kind and distance. */
void unwind_codes_add(struct unwind_codes *c, enum abi_change kind, uint32_t distance);
/* Chooses the codes, after all changes have been counted. */
void unwind_codes_choose(struct unwind_codes *c);
/* unwind_codes_nibbles() for distances without a code. */
uint64_t unwind_codes_far_nibbles(
	enum abi_change kind, uint32_t distance, uint8_t number, uint32_t *ret_count);

static inline void unwind_codes_count(
	struct unwind_codes *c, enum abi_change kind, uint32_t distance)
{
	if (distance < UNWIND_CODED_DISTANCES && !c->coded[kind][distance].count++)
		unwind_codes_add(c, kind, distance);
}

/*
 * Returns the nibbles of a change, lowest first; *RET_COUNT is their count. NUMBER is the rule's
 * number for ABI_CHANGE_TO, else 0.
 */
static inline uint64_t unwind_codes_nibbles(const struct unwind_codes *c, enum abi_change kind,
	uint32_t distance, uint8_t number, uint32_t *ret_count)
{
	const struct unwind_coded *coded;

	if (distance >= UNWIND_CODED_DISTANCES)
		return unwind_codes_far_nibbles(kind, distance, number, ret_count);
	coded = &c->coded[kind][distance];
	*ret_count = coded->nibbles;
	return coded->bits | (uint64_t)number << coded->number_shift;
}
