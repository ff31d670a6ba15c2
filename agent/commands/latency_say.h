/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tells the user on stderr which files and patterns came to nothing, and why. */
#include "agent/commands/latency.h"
#include "agent/sampler/kernel_functions/kernel_functions.h"
#include "agent/sampler/probed_files/probed_files.h"

/*
 * Called before the run and, BEGINS false, at its end. KERNEL, which may be NULL, is only counted.
 * Returns -ENOENT if there is nothing to
 * measure and nothing to wait for, or there was nothing.
 */
int latency_say_files(const struct probed_files *files, const struct kernel_functions *kernel,
	const struct latency_plan *plan, bool begins);
/*
 * Called before the run; KERNEL may be NULL. Returns -EOPNOTSUPP if kernel functions are wanted,
 * but cannot be measured.
 */
int latency_say_kernel(const struct kernel_functions *kernel, const struct latency_plan *plan);
