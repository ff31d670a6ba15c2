/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits how many calls are measured in a second. The limit is shared as water is among vessels:
 * functions that are called less often than a common level keep all their calls, those above it are
 * thinned out to it. The share is a power of two, chosen anew for each call, since every k-th call
 * could always be the same one of a loop.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/sampler/probes/latency/latency_internal.h"
#include "base/cleanup.h"

enum { MAX_SHIFT = 20 };

static const uint64_t SECOND_NS = 1000000000;
static const uint64_t HIGHEST_LEVEL = UINT64_C(1) << 40;

/* Sets RATES to the calls of each function in a second. */
static void thinning_rates(struct latency *l, uint64_t passed_ns, uint64_t *rates)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct latency_function *function = &l->functions[i];
		struct abi_latency_entries entries;

		rates[i] = 0;
		if (!function->used || function->ended || latency_read_entries(l, i, &entries))
			continue;
		rates[i] = (uint64_t)((double)(entries.calls - function->entries) *
				      (double)SECOND_NS / (double)passed_ns);
		function->entries = entries.calls;
	}
}

/* The highest power of two at which the calls of all functions, none above it, are within LIMIT. */
static uint64_t thinning_level(const uint64_t *rates, uint32_t count, uint64_t limit)
{
	for (uint64_t level = HIGHEST_LEVEL; level > 1; level /= 2) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < count; i++)
			sum += MIN(rates[i], level);
		if (sum <= limit)
			return level;
	}
	return 1;
}

/*
 * Raises the factor at once, and lowers it by one step when it will stay well below the level:
 * otherwise a steady rate would move it all the time.
 */
static uint32_t thinning_shift(uint32_t shift, uint64_t rate, uint64_t level)
{
	uint32_t wanted = shift;

	while (wanted < MAX_SHIFT && rate >> wanted > level)
		wanted++;
	if (wanted == shift && shift && rate >> (shift - 1) <= level / 2)
		wanted--;
	return wanted;
}

static void thinning_set(struct latency *l, uint32_t number, uint32_t shift)
{
	struct latency_function *function = &l->functions[number];
	struct abi_latency_function before = function->abi;

	function->abi.thin_shift = shift;
	function->abi.flags |= ABI_LATENCY_THINNED;
	if (latency_function_write(l, number)) {
		function->abi = before;
		return;
	}
	function->thin_shift = shift;
	function->largest_shift = MAX(function->largest_shift, shift);
}

static bool thinning_is_on(const struct latency *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->functions[i].thin_shift)
			return true;
	return false;
}

void latency_thin(struct latency *l, uint64_t passed_ns)
{
	autofree uint64_t *rates = calloc(MAX(l->count, 1U), sizeof(*rates));
	uint64_t limit = l->options.max_calls_per_second, level;

	if (!rates || (!limit && !thinning_is_on(l)))
		return;
	thinning_rates(l, passed_ns, rates);
	level = limit ? thinning_level(rates, l->count, limit) : HIGHEST_LEVEL;
	for (uint32_t i = 0; i < l->count; i++) {
		const struct latency_function *function = &l->functions[i];
		uint32_t shift = thinning_shift(function->thin_shift, rates[i], level);

		if (function->used && shift != function->thin_shift)
			thinning_set(l, i, shift);
	}
}
