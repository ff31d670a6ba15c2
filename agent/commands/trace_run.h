/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Runs `fathom trace` as planned. */
#include "agent/commands/trace.h"

/*
 * Returns a negative errno after printing the reason to stderr. *RET_COMMAND_STATUS is that of
 * latency_run(), and untouched where there was none.
 */
int trace_run(const struct trace_plan *plan, int *ret_command_status);
