/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The callers' stacks of `fathom latency -o`: what the sampler needs for them, and the file. */
#include "agent/sampler/sampler.h"
#include "agent/sampler/probes/latency/latency.h"

/* Changes the options of a sampler, and those of its probe, so that stacks are taken. */
void latency_profile_options(struct sampler_options *options, struct latency_options *probe);
/* Waits a bounded time for the tables that the first stacks are walked with. */
int latency_profile_prepare(struct sampler *sampler);
/* Waits for names and for walks that are unfinished; measuring has ended. */
void latency_profile_finish(struct sampler *sampler);
/* Writes the pprof file PATH and, unless QUIET, says what is in it. Returns a negative errno after
 * printing the reason to stderr. */
int latency_profile_write(struct sampler *sampler, const char *path, bool quiet);
