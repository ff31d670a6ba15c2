/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the two sides of the sandbox, sandbox.c and sandbox_child.c, agree on. */
#include <stdint.h>

#include "symbolizer/sandbox/sandbox.h"

enum {
	SANDBOX_ELF_FD = 3,
	SANDBOX_OUTPUT_FD = 4,
	SANDBOX_RESULT_FD = 5,
	SANDBOX_FIRST_COMPANION_FD = 6,
	SANDBOX_FD_COUNT = SANDBOX_FIRST_COMPANION_FD + COMPANIONS_MAX, /* at most */
	SANDBOX_MAGIC = 0x46735831,
	/* argv: program, command, parent's pid, memory, CPU seconds, output bytes, companions. */
	SANDBOX_ARGUMENTS = 7,
	/* Each companion as two numbers, role and CRC: `0.0,1.4294967295,`. */
	SANDBOX_COMPANIONS_BYTES = COMPANIONS_MAX * 16 + 1,
};

static const char SANDBOX_INDEX_COMMAND[] = "index-module";
static const char SANDBOX_KEEP_DEBUG_COMMAND[] = "keep-debug";
static const char SANDBOX_FETCH_COMMAND[] = "fetch-debuginfo"; /* debuginfod_fetch.h */

static inline uint32_t sandbox_check(const struct sandbox_message *m)
{
	return (m->magic ^ (uint32_t)m->error) * 2654435761u ^ m->broken_units;
}
