/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One kernel record in what was recorded of a ring, as far as reduce.c has to know it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece {
	uint32_t type;
	const uint8_t *bytes;
	size_t size;
	uint32_t tgid, parent; /* parent only in task records, tgid in all but parts */
	bool part; /* names no process: stacks, pieces of them, what belongs to a later sample */
	const uint8_t *raw; /* data of a PERF_RECORD_SAMPLE */
	size_t raw_bytes;
};

/* Unaligned numbers; OFFSET in bytes. */
uint32_t ring_u32_at(const uint8_t *bytes, size_t offset);
uint64_t ring_u64_at(const uint8_t *bytes, size_t offset);
/* Reads the record at BYTES, of which LEFT remain; returns false if there is none. */
bool piece_read(const uint8_t *bytes, size_t left, struct piece *ret_piece);
bool piece_is_stack(const struct piece *p);
