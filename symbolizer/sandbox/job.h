/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a sandboxed child is given and what it reports: the contract between sandbox.c, which starts
 * it, and symbolizer/indexer, which runs inside.
 */
#include <stdint.h>

#include "symbolizer/index/debug_names.h"
#include "symbolizer/sandbox/companions.h"

struct sandbox_files {
	int elf_fd; /* read */
	int output_fd; /* empty; written */
	struct companions companions; /* read, as far as they belong to the ELF file */
	bool may_ask; /* for more of these: the parent answers each question */
};

struct sandbox_result {
	int error; /* 0, -EBADMSG no readable ELF file, -E2BIG, -ENOMEM, -EIO … */
	unsigned int broken_units; /* DWARF units given up */
};

enum {
	SANDBOX_QUESTION_MAGIC = 0x46735851,
	SANDBOX_OF_MODULE = UINT32_MAX,
	SANDBOX_OFFER_MAX = 8, /* files that answer one question */
};

/*
 * The child asks its parent for files that one of its own names: the parent opens what is there and
 * passes the descriptors, whatever is in them.
 */
struct sandbox_question {
	uint32_t magic;
	uint32_t of; /* SANDBOX_OF_MODULE, or a number in the companions that the child has */
	uint32_t reserved[2]; /* as long as a message: see sandbox_receive() */
	struct debug_names names;
};

/* Of what SANDBOX_KEEP_DEBUG writes. */
static const uint64_t KEEP_DEBUG_MAX_BYTES = UINT64_C(512) << 20;
