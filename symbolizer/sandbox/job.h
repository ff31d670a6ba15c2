/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a sandboxed child is given and what it reports: the contract between sandbox.c, which starts
 * it, and symbolizer/indexer, which runs inside.
 */
#include <stdint.h>

#include "symbolizer/sandbox/companions.h"

struct sandbox_files {
	int elf_fd; /* read */
	int output_fd; /* empty; written */
	struct companions companions; /* read, as far as they belong to the ELF file */
};

struct sandbox_result {
	int error; /* 0, -EBADMSG no readable ELF file, -E2BIG, -ENOMEM, -EIO … */
	unsigned int broken_units; /* DWARF units given up */
};

/* Of what SANDBOX_KEEP_DEBUG writes. */
static const uint64_t KEEP_DEBUG_MAX_BYTES = UINT64_C(512) << 20;
