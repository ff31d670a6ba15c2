/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The report as OpenMetrics 1.0 text, for --openmetrics. */
#include "agent/latency/latency_report.h"
#include "base/buffer.h"

/*
 * Appends the histogram fathom_function_latency_seconds of each function that was called, with the
 * labels `function`, `binary` and that of --by, and counters of calls that are in no histogram.
 * Functions that share these labels have the labels `build_id` and `address` as well. Bounds are
 * powers of two of a nanosecond, so that series can be added up. Returns the buffer's error, or
 * another negative errno.
 */
int latency_openmetrics(const struct latency_report *report, struct buffer *out);
