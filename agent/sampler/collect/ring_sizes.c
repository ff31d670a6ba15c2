/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/ring_sizes.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "bpf/abi/sample_ring.h"

enum {
	MAX_PAGES = 2048,
	SAMPLE_BYTES =
		2000, /* a sample with both its stacks, on a mixed load; deep ones take 3000 */
	/*
	 * The sampler's own rings do not wake the loop, but it reads them at least twice a second.
	 */
	OWN_LOOKS_PER_SECOND = 2,
	OWN_LEAST_BYTES = 64 << 10,
	/* All of them together: machines with more CPUs have only the rings of perf events. */
	OWN_MOST_BYTES = 128 << 20,
	/* Output rings with room for a deep stack, and for the deepest that is shipped. */
	DEEP_PAGES = (256 << 10) / RING_SIZES_PAGE_BYTES,
	DEEPEST_PAGES = (512 << 10) / RING_SIZES_PAGE_BYTES,
	/* All such rings: with more CPUs, each has RING_SIZES_DEFAULT_PAGES. */
	DEEP_ALL_PAGES = (16 << 20) / RING_SIZES_PAGE_BYTES,
	DEEPEST_ALL_PAGES = (32 << 20) / RING_SIZES_PAGE_BYTES,
	/*
	 * Pieces of stack may take 1/3 of a ring, and all that one with room for a deep stack has
	 * more than the default: that stack's outer part. That wakes its reader, who may come late.
	 */
	STACKS_PART = 3,
	/*
	 * Calls of functions come in crowds, the first ones before any table is loaded: their
	 * pieces alone are to fill the half of a ring that wakes its reader.
	 */
	STACKS_PART_OF_CALLS = 2,
	/*
	 * For a CPU's context switches, or calls of functions, while the loop waits: 15000, with
	 * few new stacks.
	 */
	EVENTS_BYTES = 4 << 20,
	EVENTS_ALL_BYTES = 128 << 20, /* on machines with many CPUs */
};

static uint64_t hz_of(const struct collect_options *options)
{
	if (options->no_ticks)
		return 0;
	if (options->frequency_hz)
		return options->frequency_hz;
	return UINT64_C(1000000000) / MAX(options->period, UINT64_C(1));
}

/* Returns 0 if samples are so frequent that they need a perf ring, which wakes the loop. */
static uint32_t own_bytes_for(const struct collect_options *options)
{
	uint64_t wanted = hz_of(options) * SAMPLE_BYTES / OWN_LOOKS_PER_SECOND;
	uint32_t bytes = OWN_LEAST_BYTES;

	if (options->no_ticks)
		return 0;
	if (options->ring_pages)
		return MIN(options->ring_pages * RING_SIZES_PAGE_BYTES, ABI_RING_MAX_BYTES);
	if (wanted > ABI_RING_MAX_BYTES)
		return 0;
	while (bytes < wanted)
		bytes *= 2;
	return bytes;
}

static uint32_t least_pages_for(const struct collect_options *options, int64_t cpus)
{
	if (options->ends_soon && cpus * DEEPEST_PAGES <= DEEPEST_ALL_PAGES)
		return DEEPEST_PAGES;
	return cpus * DEEP_PAGES <= DEEP_ALL_PAGES ? DEEP_PAGES : RING_SIZES_DEFAULT_PAGES;
}

/*
 * Room for about a second of samples with only new stacks: the loop may have to wait that long. It
 * is no less if samples have rings of their own: pieces of stack from unfinished walks and, on a
 * busy machine, the side-band use it up.
 */
static uint32_t pages_for(const struct collect_options *options, int64_t cpus)
{
	uint32_t pages = least_pages_for(options, cpus);
	int64_t events = MIN((int64_t)EVENTS_BYTES, EVENTS_ALL_BYTES / cpus);
	uint64_t bytes = (uint64_t)(options->off_cpu_share * (double)events);

	if (options->ring_pages)
		return options->ring_pages;
	if (options->call_stacks || options->trace)
		bytes += (uint64_t)events;
	bytes += hz_of(options) * SAMPLE_BYTES;
	while (pages < MAX_PAGES && (uint64_t)pages * RING_SIZES_PAGE_BYTES < bytes)
		pages *= 2;
	return pages;
}

static uint32_t stack_bytes_for(const struct collect_options *options, int64_t cpus, uint32_t pages)
{
	uint32_t bytes = pages * RING_SIZES_PAGE_BYTES;

	if (options->call_stacks)
		return bytes / STACKS_PART_OF_CALLS;
	if (pages > RING_SIZES_DEFAULT_PAGES && pages == least_pages_for(options, cpus))
		return bytes - RING_SIZES_DEFAULT_PAGES * RING_SIZES_PAGE_BYTES *
				       (STACKS_PART - 1) / STACKS_PART;
	return bytes / STACKS_PART;
}

struct ring_sizes ring_sizes_for(const struct collect_options *options, int cpu)
{
	int64_t cpus = MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	struct ring_sizes sizes = { .pages = pages_for(options, cpus) };

	sizes.stack_bytes = stack_bytes_for(options, cpus, sizes.pages);
	if (ABI_STORES_IN_ORDER && !(options->without & MECHANISM_OWN_RINGS)) {
		sizes.own_bytes = own_bytes_for(options);
		sizes.own_count = (size_t)cpu + 1;
	}
	if (sizes.own_count * sizes.own_bytes > OWN_MOST_BYTES)
		sizes.own_bytes = 0;
	return sizes;
}
