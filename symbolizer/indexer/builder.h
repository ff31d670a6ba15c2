/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Builds one module's index from its file: the whole job of the sandboxed child. Reads all sources,
 * best first (runtime tables, DWARF, symbols), and writes what they yield.
 */
#include "symbolizer/sandbox/job.h"

/* Returns result.error. */
int builder_run_files(const struct sandbox_files *files, struct sandbox_result *ret_result);
/* Like builder_run_files(), without debug files. */
int builder_run(int elf_fd, int output_fd, struct sandbox_result *ret_result);
