/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How a sandboxed child is asked for the arguments of functions. The question is in the output file
 * when the child starts; it replaces it by the answer.
 */
#include <stdint.h>

enum {
	ARGUMENTS_QUESTION_MAGIC = 0x41725131,
	ARGUMENTS_ANSWER_MAGIC = 0x41724131,
	/* There are no plans because the debug information is in a .dwo file, which is not read. */
	ARGUMENTS_SPLIT_MAGIC = 0x41725331,
	ARGUMENTS_FUNCTIONS_MAX = 16384,
	/*
	 * Of answers: to be raised when the same file would get other plans, or when the layout of
	 * plans or fetches changes. Kept answers of another version are not used.
	 */
	ARGUMENTS_VERSION = 4,
};

/* Then COUNT entries of functions, ELF addresses (u64), ascending and each once. */
struct arguments_question {
	uint32_t magic, count;
};

/*
 * One for each function that has debug information. Then its plans (argument_plan.h) of the entry
 * and of returns, 0 bytes = none, each padded to a multiple of 8.
 */
struct arguments_answer {
	uint32_t magic, function; /* index into the question's */
	uint32_t entry_bytes, return_bytes; /* without padding */
};
