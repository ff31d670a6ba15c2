/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/perf_ring.h"

#include <assert.h>
#include <string.h>

void perf_ring_init(struct perf_ring *r, uint64_t position)
{
	memset(r, 0, sizeof(*r));
	r->control.data_head = position;
	r->control.data_tail = position;
}

void perf_ring_bytes(struct perf_ring *r, const void *bytes, size_t size)
{
	assert(r->size + size <= sizeof(r->record));
	memcpy(r->record + r->size, bytes, size);
	r->size += size;
}

void perf_ring_u16(struct perf_ring *r, uint16_t value)
{
	perf_ring_bytes(r, &value, sizeof(value));
}

void perf_ring_u32(struct perf_ring *r, uint32_t value)
{
	perf_ring_bytes(r, &value, sizeof(value));
}

void perf_ring_u64(struct perf_ring *r, uint64_t value)
{
	perf_ring_bytes(r, &value, sizeof(value));
}

void perf_ring_string(struct perf_ring *r, const char *text)
{
	static const uint8_t zeros[8];

	perf_ring_bytes(r, text, strlen(text) + 1);
	if (r->size % 8)
		perf_ring_bytes(r, zeros, 8 - r->size % 8);
}

void perf_ring_begin(struct perf_ring *r, uint32_t type, uint16_t misc)
{
	r->size = 0;
	perf_ring_u32(r, type);
	perf_ring_u16(r, misc);
	perf_ring_u16(r, 0);
}

void perf_ring_end_as(struct perf_ring *r, uint16_t size)
{
	memcpy(r->record + 6, &size, sizeof(size));
	for (size_t i = 0; i < r->size; i++)
		r->data[(r->control.data_head + i) % PERF_RING_BYTES] = r->record[i];
	r->control.data_head += r->size;
}

void perf_ring_end(struct perf_ring *r)
{
	perf_ring_end_as(r, (uint16_t)r->size);
}

void perf_ring_exit(struct perf_ring *r, uint64_t time_ns, uint32_t tgid)
{
	perf_ring_begin(r, PERF_RECORD_EXIT, 0);
	perf_ring_u32(r, tgid);
	perf_ring_u32(r, 1);
	perf_ring_u32(r, tgid);
	perf_ring_u32(r, 1);
	perf_ring_u64(r, time_ns);
	perf_ring_u64(r, time_ns);
	perf_ring_end(r);
}

void perf_ring_raw(struct perf_ring *r, uint64_t time_ns, const void *raw, uint32_t size)
{
	static const uint8_t zeros[8];
	uint32_t padding = (8 - (size + 4) % 8) % 8;

	perf_ring_begin(r, PERF_RECORD_SAMPLE, 0);
	perf_ring_u64(r, time_ns);
	perf_ring_u32(r, size + padding);
	perf_ring_bytes(r, raw, size);
	perf_ring_bytes(r, zeros, padding);
	perf_ring_end(r);
}
