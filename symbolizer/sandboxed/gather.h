/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Asks the parent for the debug files that a module's sections name, and for those that these files
 * name in turn. Runs in the sandbox, because the parent only opens files and never reads a header.
 */
#include "symbolizer/sandbox/job.h"

/*
 * Adds the files that the parent finds to FILES->debug_files. The build goes on without those that
 * it does not find or cannot be asked for.
 */
void gather_debug_files(struct sandbox_files *files);
