/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a sandboxed child gets and what it reports: the contract between sandbox.c, which starts it,
 * and symbolizer/indexer, which runs inside.
 */
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/index/debug_names.h"
#include "symbolizer/sandbox/debug_files.h"

/* The most addresses that an index may be asked for. */
enum { SANDBOX_ADDRESSES_MAX = 1024 };

struct sandbox_files {
	/* Read, as the debug files are; any of them may be a mere path (O_PATH). */
	int elf_fd;
	uint64_t elf_bytes; /* its size, for the limits of the builder */
	int output_fd; /* empty; written */
	/*
	 * How much of the output file may hold decompressed sections until the index is written to
	 * it; 0: nothing.
	 */
	uint64_t scratch_bytes;
	struct debug_files debug_files; /* read if they belong to the ELF file */
	bool may_ask; /* the child may ask its parent for more debug files */
	bool wants_functions; /* the index is to have functions (symbolizer/index/functions.h) */
	/*
	 * ELF addresses, ascending: of a big file, the index needs to answer no others and says so
	 * (INDEX_SOURCE_ASKED). A count of 0: all.
	 */
	const uint64_t *addresses;
	size_t address_count;
};

struct sandbox_result {
	int error; /* 0, -EBADMSG no readable ELF file, -E2BIG, -ENOMEM, -EIO … */
	unsigned int broken_units; /* unreadable DWARF units */
};

enum {
	SANDBOX_QUESTION_MAGIC = 0x46735851,
	SANDBOX_OF_MODULE = UINT32_MAX,
	SANDBOX_OFFER_MAX = 8, /* most files in one answer */
};

/*
 * The child asks its parent for files that one of its own files names. The parent opens those it
 * finds and passes the descriptors, without looking at the contents.
 */
struct sandbox_question {
	uint32_t magic;
	uint32_t of; /* SANDBOX_OF_MODULE, or an index into the child's debug files */
	uint32_t reserved[2]; /* pads to a message's length: see sandbox_receive() */
	struct debug_names names;
};

/* Limit of SANDBOX_KEEP_DEBUG's output. */
static const uint64_t KEEP_DEBUG_MAX_BYTES = UINT64_C(512) << 20;
