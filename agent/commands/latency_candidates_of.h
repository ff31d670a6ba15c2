/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From what became of files and functions to the list of --dry-run. */
#include "agent/latency/latency_candidates.h"
#include "agent/sampler/probed_files/probed_files.h"

/* The list borrows from FILES. Returns -ENOMEM. */
int latency_candidates_of(
	const struct probed_files *files, struct latency_candidates *ret_candidates);
void latency_candidates_of_free(struct latency_candidates *candidates);
