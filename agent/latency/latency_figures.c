/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/latency/latency_figures.h"

#include <stdio.h>

#include "base/cleanup.h"

void latency_sums_add(struct latency_sums *sums, const struct latency_histogram *histogram)
{
	sums->calls += histogram->calls;
	sums->total_ns += histogram->total_ns;
	sums->max_ns = MAX(sums->max_ns, histogram->max_ns);
	for (size_t i = 0; i < histogram->bucket_count; i++)
		sums->buckets[histogram->buckets[i].number] += histogram->buckets[i].calls;
}

void latency_sums_of_function(
	const struct latency_function *function, struct latency_sums *ret_sums)
{
	*ret_sums = (struct latency_sums){ 0 };
	for (size_t i = 0; i < function->histogram_count; i++)
		latency_sums_add(ret_sums, &function->histograms[i]);
}

uint64_t latency_percentile(const struct latency_sums *sums, unsigned int percent)
{
	unsigned __int128 share = (unsigned __int128)sums->calls * percent;
	uint64_t rank = (uint64_t)((share + 99) / 100), seen = 0;

	for (uint32_t i = 0; i < ABI_LATENCY_BUCKETS; i++) {
		seen += sums->buckets[i];
		if (seen >= rank && seen)
			return MIN(latency_bucket_last(i), sums->max_ns);
	}
	return 0;
}

struct latency_figures latency_figures(const struct latency_sums *sums)
{
	if (!sums->calls)
		return (struct latency_figures){ 0 };
	return (struct latency_figures){
		.mean_ns = (double)sums->total_ns / (double)sums->calls,
		.p50_ns = latency_percentile(sums, 50),
		.p90_ns = latency_percentile(sums, 90),
		.p99_ns = latency_percentile(sums, 99),
	};
}

/* The row above follows the last power of two. */
_Static_assert(
	(ABI_LATENCY_BUCKETS - 1) / (1 << ABI_LATENCY_BUCKET_BITS) + ABI_LATENCY_BUCKET_BITS ==
		LATENCY_ROW_ABOVE,
	"rows of the histogram");

unsigned int latency_row(uint32_t bucket)
{
	uint64_t begin = abi_latency_bucket_start(bucket);

	if (bucket + 1 == ABI_LATENCY_BUCKETS)
		return LATENCY_ROW_ABOVE;
	return begin < 2 ? 0 : 63 - (unsigned int)__builtin_clzll(begin);
}

void latency_rows_of(const struct latency_sums *sums, struct latency_rows *ret_rows)
{
	*ret_rows = (struct latency_rows){ 0 };
	for (uint32_t i = 0; i < ABI_LATENCY_BUCKETS; i++)
		ret_rows->calls[latency_row(i)] += sums->buckets[i];
}

void latency_duration(double ns, char text[LATENCY_DURATION_BYTES])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double value = ns;
	size_t unit = 0;
	int decimals;

	while (value >= 999.5 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1000;
		unit++;
	}
	decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	/* The clock sums in ns; a mean may lie between. */
	if (!unit && value == (double)(uint64_t)value)
		decimals = 0;
	snprintf(text, LATENCY_DURATION_BYTES, "%.*f%s", decimals, value, units[unit]);
}
