/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Makes plans (symbolizer/arguments/argument_plan.h) from DWARF: where a function's parameters are
 * at its first instruction, and its results at a return. Runs in the sandbox.
 */
#include "symbolizer/sandbox/job.h"

/*
 * Answers the question in the output file (symbolizer/sandbox/arguments_wire.h). Returns
 * result.error: -ENOENT if there is no DWARF, -EBADMSG if the question or the file cannot be read,
 * -EOPNOTSUPP if parts of the DWARF are in files that are not there.
 */
int arguments_run(const struct sandbox_files *files, struct sandbox_result *ret_result);
