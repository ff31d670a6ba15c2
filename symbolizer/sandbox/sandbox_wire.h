/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Protocol between the two sides of the sandbox, sandbox.c and symbolizer/sandboxed. */
#include <stdint.h>

#include "symbolizer/sandbox/sandbox.h"

enum {
	SANDBOX_ELF_FD = 3,
	SANDBOX_OUTPUT_FD = 4,
	SANDBOX_RESULT_FD = 5,
	SANDBOX_FIRST_DEBUG_FD = 6,
	SANDBOX_FD_COUNT = SANDBOX_FIRST_DEBUG_FD + DEBUG_FILES_MAX, /* at most */
	SANDBOX_MAGIC = 0x46735831,
	SANDBOX_ANSWER_MAGIC = 0x46735841,
	/*
	 * argv: program, command, parent's pid, memory, CPU seconds, output bytes, debug files,
	 * addresses.
	 */
	SANDBOX_ARGUMENTS = 8,
	/*
	 * Each debug file is two numbers, role and CRC: `0.0,1.4294967295,`. A leading `?` means
	 * that the child may ask for more.
	 */
	SANDBOX_DEBUG_FILES_BYTES = DEBUG_FILES_MAX * 16 + 2,
	/* Each address is hexadecimal: `4010a0,4010f3,`. */
	SANDBOX_ADDRESS_BYTES = 17,
};

/* The answer to a question; its descriptors are attached by SCM_RIGHTS. */
struct sandbox_answer {
	uint32_t magic;
	uint32_t count;
	struct {
		uint32_t role; /* enum debug_file_role */
		uint32_t crc;
	} items[SANDBOX_OFFER_MAX];
};

static const char SANDBOX_INDEX_COMMAND[] = "index-module";
static const char SANDBOX_KEEP_DEBUG_COMMAND[] = "keep-debug";
static const char SANDBOX_ARGUMENTS_COMMAND[] = "read-arguments";
static const char SANDBOX_FETCH_COMMAND[] = "fetch-debuginfo"; /* debuginfod_fetch.h */

static inline uint32_t sandbox_check(const struct sandbox_message *m)
{
	return (m->magic ^ (uint32_t)m->error) * 2654435761u ^ m->broken_units;
}
