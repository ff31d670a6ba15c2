/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/writer/address_sort.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, ADDRESS_BITS = 32 };

static uint32_t digit_of(const struct address_item *item, unsigned int shift)
{
	return item->address >> shift & (DIGITS - 1);
}

/* Copies all items to TO, ordered by the digit at SHIFT. */
static void sort_by_digit(
	const struct address_item *from, struct address_item *to, size_t count, unsigned int shift)
{
	size_t places[DIGITS] = { 0 }, place = 0;

	for (size_t i = 0; i < count; i++)
		places[digit_of(&from[i], shift)]++;
	for (size_t digit = 0; digit < DIGITS; digit++) {
		size_t here = places[digit];

		places[digit] = place;
		place += here;
	}
	for (size_t i = 0; i < count; i++)
		to[places[digit_of(&from[i], shift)]++] = from[i];
}

/* Returns the bits that differ between addresses; 0 if the items are already in order. */
static uint32_t bits_to_sort(const struct address_item *items, size_t count)
{
	uint32_t differ = 0;
	bool sorted = true;

	for (size_t i = 1; i < count; i++) {
		differ |= items[i].address ^ items[0].address;
		sorted &= items[i - 1].address <= items[i].address;
	}
	return sorted ? 0 : differ;
}

int address_sort(struct address_item *items, size_t count)
{
	uint32_t differ = bits_to_sort(items, count);
	struct address_item *from = items, *to;
	autofree struct address_item *other = NULL;

	if (!differ)
		return 0;
	other = malloc(count * sizeof(*other));
	if (!other)
		return -ENOMEM;
	to = other;
	for (unsigned int shift = 0; shift < ADDRESS_BITS; shift += DIGIT_BITS) {
		struct address_item *sorted = to;

		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		sort_by_digit(from, to, count, shift);
		to = from;
		from = sorted;
	}
	if (from != items)
		memcpy(items, from, count * sizeof(*items));
	return 0;
}
