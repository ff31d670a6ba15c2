/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes perf records byte by byte into a ring in memory, like the kernel. */
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

enum { PERF_RING_BYTES = 2048 };

struct perf_ring {
	struct perf_event_mmap_page control;
	_Alignas(8) uint8_t data[PERF_RING_BYTES];
	/* the record being made */
	uint8_t record[1 << 16];
	size_t size;
};

/* Makes the ring empty, with head and tail at POSITION. */
void perf_ring_init(struct perf_ring *r, uint64_t position);
void perf_ring_begin(struct perf_ring *r, uint32_t type, uint16_t misc);
void perf_ring_u16(struct perf_ring *r, uint16_t value);
void perf_ring_u32(struct perf_ring *r, uint32_t value);
void perf_ring_u64(struct perf_ring *r, uint64_t value);
void perf_ring_bytes(struct perf_ring *r, const void *bytes, size_t size);
/* Appends TEXT, padded with NULs to a multiple of 8. */
void perf_ring_string(struct perf_ring *r, const char *text);
/* Puts the record into the ring with its real size and advances the head. */
void perf_ring_end(struct perf_ring *r);
/* Like perf_ring_end(), but the header's size is SIZE. */
void perf_ring_end_as(struct perf_ring *r, uint16_t size);
/* Writes an exit record of TGID (32 bytes). */
void perf_ring_exit(struct perf_ring *r, uint64_t time_ns, uint32_t tgid);
/* Writes a sample record with SIZE bytes of raw data. */
void perf_ring_raw(struct perf_ring *r, uint64_t time_ns, const void *raw, uint32_t size);
