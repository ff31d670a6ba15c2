/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Builds one module's index from its file: the sandboxed child's whole work. Reads every source
 * there is, best first (what a runtime wrote, DWARF, symbols), and writes what they gave.
 */
#include "symbolizer/sandbox/job.h"

/* Returns result.error. */
int builder_run_files(const struct sandbox_files *files, struct sandbox_result *ret_result);
/* The same of a file alone. */
int builder_run(int elf_fd, int output_fd, struct sandbox_result *ret_result);
