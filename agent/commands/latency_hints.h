/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tells the user on stderr what patterns that name no function may have meant. */
#include <stdbool.h>

#include "agent/commands/latency.h"

struct sampler;

/*
 * To be called after latency_say_files(). FAILED: there is nothing to measure, so there is time to
 * look into libraries, too.
 */
void latency_say_hints(struct sampler *sampler, const struct latency_plan *plan, bool failed);
