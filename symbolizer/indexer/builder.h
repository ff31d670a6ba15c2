/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Builds one module's index from its file: the sandboxed child's whole work. Reads every source
 * there is, best first (pclntab for Go code, DWARF, symbols), and writes what they gave.
 */
#include "symbolizer/index/companions.h"

struct builder_files {
	int elf_fd; /* read */
	int output_fd; /* empty; written */
	struct companions companions; /* read, as far as they belong to the ELF file */
};

struct builder_result {
	int error; /* 0, -EBADMSG no readable ELF file, -E2BIG, -ENOMEM, -EIO … */
	unsigned int broken_units; /* DWARF units given up */
};

/* Returns result.error. */
int builder_run_files(const struct builder_files *files, struct builder_result *ret_result);
/* The same of a file alone. */
int builder_run(int elf_fd, int output_fd, struct builder_result *ret_result);
