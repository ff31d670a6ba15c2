/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One page's rows as the bytes of bpf/abi/unwind.h. It does not know where rows come from. */
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/cfi/unwind_codes.h"

enum {
	UNWIND_PACK_BUCKETS = 1 << (ABI_UNWIND_PAGE_SHIFT - ABI_UNWIND_BUCKET_SHIFT_MIN),
	/*
	 * A row takes three bytes at most, half a byte more where it is further than 256 bytes from
	 * the one before; a bucket takes one, and may leave a nibble over.
	 */
	UNWIND_PACK_CHANGE_BYTES = 3 * ABI_UNWIND_PAGE_ROWS + (1 << ABI_UNWIND_PAGE_SHIFT) / 256 +
				   2 * UNWIND_PACK_BUCKETS,
	UNWIND_PACK_BYTES = sizeof(struct abi_unwind_page) + 2 * UNWIND_PACK_BUCKETS + 4 +
			    (4 + sizeof(struct abi_unwind_rule)) * ABI_UNWIND_PAGE_RULES +
			    UNWIND_PACK_CHANGE_BYTES + 8,
};

/* A page's rows; rule 0 is valid at its beginning. */
struct unwind_rows {
	uint32_t row_count, rule_count;
	uint16_t addresses[ABI_UNWIND_PAGE_ROWS]; /* in the page; ascending, above 0 */
	uint8_t numbers[ABI_UNWIND_PAGE_ROWS]; /* of the row's rule, another than the row's before
						*/
	struct abi_unwind_rule rules[ABI_UNWIND_PAGE_RULES];
};

struct unwind_change {
	uint16_t distance;
	uint8_t kind; /* enum abi_change */
	uint8_t number; /* ABI_CHANGE_TO: of the rule that it leads to, else 0 */
};

struct unwind_pack {
	uint8_t sorted[ABI_UNWIND_PAGE_RULES]; /* numbers of rules in the page's order */
	uint8_t place[ABI_UNWIND_PAGE_RULES]; /* in there, of each rule */
	uint8_t entry;
	uint8_t rules[ABI_UNWIND_PAGE_ROWS]; /* the place of each row's rule */
	uint32_t shift;
	uint32_t change_count;
	struct unwind_change changes[ABI_UNWIND_PAGE_ROWS];
	uint8_t starts[UNWIND_PACK_BUCKETS]; /* the rule at the beginning of each bucket */
	uint32_t ends[UNWIND_PACK_BUCKETS]; /* the number of changes up to its end */
	struct unwind_codes codes;
	uint32_t size;
	union {
		struct abi_unwind_page header;
		uint8_t bytes[UNWIND_PACK_BYTES];
	} output;
};

_Static_assert(UNWIND_PACK_CHANGE_BYTES <= UINT16_MAX, "places of buckets are 16-bit numbers");

/* Makes PACK->output of ROWS. */
void unwind_pack(struct unwind_pack *pack, const struct unwind_rows *rows, uint32_t flags);
