/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The report as text for people: figures and bars for each function, and what is missing. */
#include "agent/latency/latency_report.h"
#include "base/buffer.h"

/*
 * Appends REPORT: functions with calls, that with the longest total time first; the names of some
 * without; what could not be measured; what the probes cost. Of the histograms of one function by
 * goroutine, process or cgroup the 20 with the longest total times are shown. Returns the buffer's
 * error, or -ENOMEM.
 */
int latency_text(const struct latency_report *report, struct buffer *out);
