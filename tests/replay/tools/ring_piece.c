/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/replay/tools/ring_piece.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/abi/off_cpu.h"
#include "bpf/abi/sample.h"

uint32_t ring_u32_at(const uint8_t *bytes, size_t offset)
{
	uint32_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

uint64_t ring_u64_at(const uint8_t *bytes, size_t offset)
{
	uint64_t value;

	memcpy(&value, bytes + offset, sizeof(value));
	return value;
}

static void piece_read_raw(struct piece *p)
{
	uint32_t kind;

	if (p->size < 8 + 8 + 4 + 32)
		return;
	p->raw = p->bytes + 8 + 8 + 4;
	p->raw_bytes = MIN(ring_u32_at(p->bytes, 16), p->size - 20);
	kind = ring_u32_at(p->raw, 0);
	if (kind == ABI_TICK || kind == ABI_SWITCH_OUT)
		p->tgid = ring_u32_at(p->raw, offsetof(struct abi_sample, tgid));
	else if (kind == ABI_WAKE)
		p->tgid = ring_u32_at(p->raw, offsetof(struct abi_wake, tgid));
	else if (kind == ABI_SIGHTINGS_RECORD)
		p->tgid = ring_u32_at(p->raw, offsetof(struct abi_sightings, tgid));
	else
		p->part = true;
}

bool piece_read(const uint8_t *bytes, size_t left, struct piece *ret_piece)
{
	struct perf_event_header header;
	struct piece p = { .bytes = bytes };

	if (left < sizeof(header))
		return false;
	memcpy(&header, bytes, sizeof(header));
	if (header.size < sizeof(header) || header.size > left)
		return false;
	p.type = header.type;
	p.size = header.size;
	if (p.type == PERF_RECORD_SAMPLE)
		piece_read_raw(&p);
	else if (p.size >= 16)
		p.tgid = ring_u32_at(bytes, 8);
	if (p.type == PERF_RECORD_FORK && p.size >= 16)
		p.parent = ring_u32_at(bytes, 12);
	*ret_piece = p;
	return true;
}

bool piece_is_stack(const struct piece *p)
{
	return p->type == PERF_RECORD_SAMPLE && p->raw && ring_u32_at(p->raw, 0) == ABI_STACK;
}
