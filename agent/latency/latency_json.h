/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The report as one JSON object in one line; docs/latency.md lists its members. */
#include <stdbool.h>

#include "agent/latency/latency_report.h"
#include "base/buffer.h"

/* IS_INTERVAL: the report is of a part of the run (-i). Returns the buffer's error, or -ENOMEM. */
int latency_json(const struct latency_report *report, bool is_interval, struct buffer *out);
