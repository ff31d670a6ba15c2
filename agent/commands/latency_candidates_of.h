/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From what became of functions to the list of --dry-run. */
#include "agent/latency/latency_candidates.h"
#include "agent/sampler/kernel_functions/kernel_functions.h"
#include "agent/sampler/probed_files/probed_files.h"

/* The list borrows from FILES and KERNEL, which may be NULL. Returns -ENOMEM. */
int latency_candidates_of(const struct probed_files *files, const struct kernel_functions *kernel,
	struct latency_candidates *ret_candidates);
void latency_candidates_of_free(struct latency_candidates *candidates);
