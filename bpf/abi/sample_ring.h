/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * A CPU's ring that the sampler writes by itself: one element of an array that user space maps. It
 * is laid out as perf's rings are, so that one reader does for both: a page with the head, which
 * BPF moves, and the tail, which user space moves; then the records, each with a perf header and as
 * PERF_SAMPLE_TIME | PERF_SAMPLE_RAW has it. Unlike perf's, a record that begins before the ring's
 * end never goes around it, but on into the room behind.
 */
#include "bpf/abi/sample.h"

enum {
	ABI_RING_HEAD = 1024, /* byte offsets: as in struct perf_event_mmap_page */
	ABI_RING_TAIL = 1032,
	ABI_RING_DATA = 4096,
	ABI_RING_BEHIND_BYTES = 4096, /* of room behind the end, at least the longest record */
	ABI_RING_MIN_BYTES = 4096, /* of data; always a power of two */
	ABI_RING_MAX_BYTES = 1 << 20,
	ABI_RING_ALIGNMENT = 8, /* of records */
	ABI_RING_RECORD = 9, /* PERF_RECORD_SAMPLE */
};

struct abi_ring_record {
	abi_u32 type; /* ABI_RING_RECORD */
	unsigned short misc; /* 0 */
	unsigned short size; /* bytes, header included; a multiple of 8 */
	abi_u64 time_ns; /* CLOCK_MONOTONIC */
	abi_u32 raw_bytes; /* that follow, padding included */
	abi_u8 raw[4];
};

/*
 * Whether stores are seen in the order in which they are made (x86_64), without the barriers that
 * BPF cannot ask for: what says that a record is there must not be seen before the record.
 */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
enum { ABI_STORES_IN_ORDER = 1 };
#else
enum { ABI_STORES_IN_ORDER = 0 };
#endif

_Static_assert(sizeof(struct abi_ring_record) == 24, "the ring's layout");
