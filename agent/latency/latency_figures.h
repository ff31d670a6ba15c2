/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Figures of a histogram: mean, percentiles, calls by powers of two. */
#include <stdint.h>

#include "agent/latency/latency_report.h"

/* One or several histograms, added up. */
struct latency_sums {
	uint64_t calls, total_ns, max_ns;
	uint64_t buckets[ABI_LATENCY_BUCKETS]; /* calls */
};
void latency_sums_add(struct latency_sums *sums, const struct latency_histogram *histogram);
void latency_sums_of_function(
	const struct latency_function *function, struct latency_sums *ret_sums);

struct latency_figures {
	double mean_ns;
	uint64_t p50_ns, p90_ns, p99_ns;
};
/* All 0 without calls. */
struct latency_figures latency_figures(const struct latency_sums *sums);
/*
 * The time within which at least PERCENT (1 to 100) of the calls returned: the highest value of the
 * bucket in which that call is, and at most the longest call. It is too high by at most an eighth.
 */
uint64_t latency_percentile(const struct latency_sums *sums, unsigned int percent);

/*
 * Row N has the calls of 2^N to 2^(N+1) - 1 ns, row 0 those of 0 ns as well, the last one those of
 * the last bucket.
 */
enum { LATENCY_ROWS = 43, LATENCY_ROW_ABOVE = LATENCY_ROWS - 1 };
struct latency_rows {
	uint64_t calls[LATENCY_ROWS];
};
/* The row that BUCKET belongs to. */
unsigned int latency_row(uint32_t bucket);
void latency_rows_of(const struct latency_sums *sums, struct latency_rows *ret_rows);

/* Room for the longest text of a duration, `18446744073s`. */
enum { LATENCY_DURATION_BYTES = 24 };
/* Writes NS with three digits and a unit: 950ns, 1.23us, 45.6ms, 7200s. */
void latency_duration(double ns, char text[LATENCY_DURATION_BYTES]);
