/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Runs `fathom trace` as planned. */
#include "agent/commands/latency_run.h"
#include "agent/commands/trace.h"

/* Returns a negative errno after printing the reason to stderr. */
int trace_run(const struct trace_plan *plan, struct latency_ended *ret_ended);
