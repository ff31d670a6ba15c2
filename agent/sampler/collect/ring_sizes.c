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
	/* All output rings: with more CPUs, each has RING_SIZES_DEFAULT_PAGES. */
	OUTPUT_ALL_PAGES = (16 << 20) / RING_SIZES_PAGE_BYTES,
	/* All of them together: machines with more CPUs have only the rings of perf events. */
	OWN_MOST_BYTES = 128 << 20,
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

/*
 * Room for about a second of samples with only new stacks: the loop may have to wait that long. It
 * is no less if samples have rings of their own: pieces of stack from unfinished walks and, on a
 * busy machine, the side-band use it up.
 */
static uint32_t pages_for(const struct collect_options *options)
{
	uint32_t pages = RING_SIZES_DEFAULT_PAGES;
	int64_t cpus = MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	int64_t events = MIN((int64_t)EVENTS_BYTES, EVENTS_ALL_BYTES / cpus);
	uint64_t bytes = (uint64_t)(options->off_cpu_share * (double)events);

	if (options->ring_pages)
		return options->ring_pages;
	if (options->call_stacks || options->trace)
		bytes += (uint64_t)events;
	bytes += hz_of(options) * SAMPLE_BYTES;
	if (cpus * RING_SIZES_DEEP_PAGES <= OUTPUT_ALL_PAGES)
		pages = RING_SIZES_DEEP_PAGES;
	while (pages < MAX_PAGES && (uint64_t)pages * RING_SIZES_PAGE_BYTES < bytes)
		pages *= 2;
	return pages;
}

struct ring_sizes ring_sizes_for(const struct collect_options *options, int cpu)
{
	struct ring_sizes sizes = { .pages = pages_for(options) };

	if (ABI_STORES_IN_ORDER && !(options->without & MECHANISM_OWN_RINGS)) {
		sizes.own_bytes = own_bytes_for(options);
		sizes.own_count = (size_t)cpu + 1;
	}
	if (sizes.own_count * sizes.own_bytes > OWN_MOST_BYTES)
		sizes.own_bytes = 0;
	return sizes;
}
