/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * A CPU's ring that BPF writes without perf: one element of an array map that user space mmaps. The
 * layout is that of perf's rings, so one reader serves both: a page with the head, which BPF moves,
 * and the tail, which user space moves; then the records, each with a perf header and the fields of
 * PERF_SAMPLE_TIME | PERF_SAMPLE_RAW. Unlike in perf's rings, a record never wraps around the end:
 * it continues into spare room behind it.
 */
#include "bpf/abi/sample.h"

enum {
	ABI_RING_HEAD = 1024, /* byte offsets, as in struct perf_event_mmap_page */
	ABI_RING_TAIL = 1032,
	ABI_RING_DATA = 4096,
	ABI_RING_BEHIND_BYTES = 4096, /* spare room behind the end; holds the longest record */
	ABI_RING_MIN_BYTES = 4096, /* of data; sizes are powers of two */
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
 * Whether other CPUs see stores in program order (x86_64). BPF has no barriers, and the new head
 * must not be visible before its record.
 */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
enum { ABI_STORES_IN_ORDER = 1 };
#else
enum { ABI_STORES_IN_ORDER = 0 };
#endif

_Static_assert(sizeof(struct abi_ring_record) == 24, "the ring's layout");
