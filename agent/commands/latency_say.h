/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tells the user on stderr which files and patterns came to nothing, and why. */
#include "agent/commands/latency.h"
#include "agent/sampler/probed_files/probed_files.h"

/*
 * Called before the run and, BEGINS false, at its end. Returns -ENOENT if there is nothing to
 * measure and nothing to wait for, or there was nothing.
 */
int latency_say_files(
	const struct probed_files *files, const struct latency_plan *plan, bool begins);
