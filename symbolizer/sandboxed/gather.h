/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Asks the parent for the debug files of a module, by what its sections say, and for what these
 * name in turn. Runs closed in: the parent only opens files and never reads a header.
 */
#include "symbolizer/sandbox/job.h"

/*
 * Adds to FILES->companions what the parent has. What it does not have, or cannot be asked for, is
 * left out: the build goes on without.
 */
void gather_companions(struct sandbox_files *files);
