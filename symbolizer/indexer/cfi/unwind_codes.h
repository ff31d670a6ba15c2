/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which changes of a page have a code (bpf/abi/unwind.h): those are chosen that save most nibbles,
 * one after the other. All are as good for what reads them.
 */
#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"

enum { UNWIND_CODED_DISTANCES = 256 }; /* further ones have no code */

/* Changes of a kind that are so far from the ones before: how often, and what one takes. */
struct unwind_coded {
	uint32_t bits; /* the code or ABI_CHANGE_OTHER; once codes are chosen, all but the number */
	uint16_t count;
	uint8_t nibbles;
	uint8_t number_shift; /* where `bits` leave out a rule's number */
};

struct unwind_codes {
	uint16_t codes[ABI_UNWIND_CODES]; /* as in the page's header */
	uint32_t count;
	struct unwind_coded coded[ABI_CHANGE_KINDS][UNWIND_CODED_DISTANCES]; /* [0]: not used */
	/* The distances that occur. */
	uint8_t distances[ABI_CHANGE_KINDS][UNWIND_CODED_DISTANCES];
	uint32_t distance_counts[ABI_CHANGE_KINDS];
};

/* All counts are 0. */
void unwind_codes_init(struct unwind_codes *c);
/* The first of its kind and distance. */
void unwind_codes_add(struct unwind_codes *c, enum abi_change kind, uint32_t distance);
/* After the last one. */
void unwind_codes_choose(struct unwind_codes *c);
/* The nibbles of a change that is further. */
uint64_t unwind_codes_far_nibbles(
	enum abi_change kind, uint32_t distance, uint8_t number, uint32_t *ret_count);

static inline void unwind_codes_count(
	struct unwind_codes *c, enum abi_change kind, uint32_t distance)
{
	if (distance < UNWIND_CODED_DISTANCES && !c->coded[kind][distance].count++)
		unwind_codes_add(c, kind, distance);
}

/* The nibbles of a change, the lowest first, and how many of them. NUMBER: of ABI_CHANGE_TO, else
 * 0. */
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
