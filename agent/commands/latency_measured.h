/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From what the sampler has measured to a report. */
#include "agent/latency/latency_report.h"

struct sampler;

/*
 * Adds to REPORT, which has nothing yet, all functions that are measured, with everything measured
 * since the beginning. Returns a negative errno.
 */
int latency_measured(struct sampler *sampler, struct latency_report *report);
