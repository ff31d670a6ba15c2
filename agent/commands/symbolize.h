/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of `fathom symbolize`: getting a file's index, printing answers. */
#include <stdbool.h>
#include <stdio.h>

#include "agent/config.h"
#include "symbolizer/index/index.h"

/*
 * The index of the ELF file PATH: from the cache, else built in the sandbox. Without a cache
 * directory that may be used, nothing is kept. Says on stderr what is wrong.
 */
int symbolize_open(const struct config *config, const char *path, struct index **ret_index);

struct symbolize_style {
	bool json;
	bool linkage_names; /* as in the file, not made readable */
	bool no_inlines;
	const char *module; /* the file's name, for JSON */
};
/* The answer for one address, as llvm-symbolizer prints it. */
void symbolize_print(FILE *out, const struct symbolize_style *style, uint64_t elf_addr,
	const struct index_frame *frames, size_t count);
/* A line that is no address. */
void symbolize_print_error(FILE *out, const struct symbolize_style *style, const char *line);
