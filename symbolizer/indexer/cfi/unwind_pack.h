/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Packs one page's rows into the format of bpf/abi/unwind.h. */
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/cfi/unwind_codes.h"

enum {
	UNWIND_PACK_BUCKETS = 1 << (ABI_UNWIND_PAGE_SHIFT - ABI_UNWIND_BUCKET_SHIFT_MIN),
	/*
	 * A row takes at most three bytes, plus half a byte if it is more than 256 bytes after the
	 * row before; a bucket takes one byte, and may waste a nibble.
	 */
	UNWIND_PACK_CHANGE_BYTES = 3 * ABI_UNWIND_PAGE_ROWS + (1 << ABI_UNWIND_PAGE_SHIFT) / 256 +
				   2 * UNWIND_PACK_BUCKETS,
	UNWIND_PACK_BYTES = sizeof(struct abi_unwind_page) + 2 * UNWIND_PACK_BUCKETS + 4 +
			    (4 + sizeof(struct abi_unwind_rule)) * ABI_UNWIND_PAGE_RULES +
			    UNWIND_PACK_CHANGE_BYTES + 8,
};

/* A page's rows; rule 0 is valid at the page's start. */
struct unwind_rows {
	uint32_t row_count, rule_count;
	uint16_t addresses[ABI_UNWIND_PAGE_ROWS]; /* offsets in the page; ascending, above 0 */
	uint8_t numbers[ABI_UNWIND_PAGE_ROWS]; /* rule of each row; differs from the row before */
	struct abi_unwind_rule rules[ABI_UNWIND_PAGE_RULES];
};

struct unwind_change {
	uint16_t distance; /* bytes from the change before, or from the bucket's start */
	uint8_t kind; /* enum abi_change */
	uint8_t number; /* ABI_CHANGE_TO: number of the new rule; else 0 */
};

struct unwind_pack {
	uint8_t sorted[ABI_UNWIND_PAGE_RULES]; /* numbers of rules in the page's order */
	uint8_t place[ABI_UNWIND_PAGE_RULES]; /* of each rule: its index in `sorted` */
	uint8_t entry; /* rule of ABI_CHANGE_ENTRY, as index into `sorted` */
	uint8_t rules[ABI_UNWIND_PAGE_ROWS]; /* of each row: its rule's index in `sorted` */
	uint32_t shift; /* log2 of a bucket's size in bytes of code */
	uint32_t change_count;
	struct unwind_change changes[ABI_UNWIND_PAGE_ROWS];
	uint8_t starts[UNWIND_PACK_BUCKETS]; /* rule at each bucket's start */
	uint32_t ends[UNWIND_PACK_BUCKETS]; /* number of changes up to each bucket's end */
	struct unwind_codes codes;
	uint32_t size;
	union {
		struct abi_unwind_page header;
		uint8_t bytes[UNWIND_PACK_BYTES];
	} output;
};

_Static_assert(UNWIND_PACK_CHANGE_BYTES <= UINT16_MAX, "places of buckets are 16-bit numbers");

/* Packs ROWS into PACK->output. FLAGS is enum abi_unwind_page_flags. */
void unwind_pack(struct unwind_pack *pack, const struct unwind_rows *rows, uint32_t flags);
