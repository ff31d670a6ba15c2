/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sizes of the rings, by what is sampled and how often. */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"

enum {
	RING_SIZES_DEFAULT_PAGES = 32, /* 128 KiB */
	RING_SIZES_PAGE_BYTES = 4096,
};

struct ring_sizes {
	uint32_t pages; /* data pages in the ring of an output event */
	uint32_t stack_bytes; /* of it, for pieces of stack between two readings */
	uint32_t own_bytes; /* data bytes in each of the sampler's own rings; 0 = it has none */
	size_t own_count; /* for CPUs 0 to own_count - 1 */
};

/* CPU is the highest number of an online CPU. */
struct ring_sizes ring_sizes_for(const struct collect_options *options, int cpu);
