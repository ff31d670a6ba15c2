/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Runs `fathom latency` as planned. */
#include "agent/commands/latency.h"

/* Returns a negative errno after printing the reason to stderr. */
int latency_run(const struct latency_plan *plan);
