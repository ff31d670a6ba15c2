/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Unwind rules that come from elsewhere than call frame information: from the tables that a
 * language runtime unwinds with, and from code that has no tables. What is read is untrusted, like
 * all of the file.
 */
#include <stdint.h>

#include "bpf/abi/unwind.h"

typedef void unwind_source_sink(
	void *context, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule);

struct unwind_source {
	uint32_t function_count;
	/* An additional register that the file's other code needs, as in struct cfi_section. */
	uint8_t kept;
	/* Gets the range of function NUMBER; 0 bytes: it has no rules here. -EBADMSG if malformed.
	 */
	int (*function)(void *state, uint32_t number, uint64_t *ret_low, uint64_t *ret_bytes);
	/*
	 * Passes the rows of function NUMBER to SINK, ascending. Before the first row it sets
	 * *RET_ENTRY to the rule that is mostly valid at the function's first instruction.
	 */
	int (*run)(void *state, uint32_t number, struct abi_unwind_rule *ret_entry,
		unwind_source_sink *sink, void *context);
	void (*close)(void *state);
	void *state;
};

/* What is found in code between the functions that have rules, ascending. */
struct unwind_gap_sink {
	unwind_source_sink *row;
	/* [LOW, HIGH) seems to be one function. */
	void (*function)(void *context, uint64_t low, uint64_t high);
	void *context;
};

struct unwind_gap_source {
	/* Looks at the code in [LOW, HIGH). Only -ENOMEM is an error. */
	int (*run)(void *state, uint64_t low, uint64_t high, const struct unwind_gap_sink *sink);
	/* Where the code of the file's entry point ends, which is LOW; at most HIGH. */
	uint64_t (*entry_end)(void *state, uint64_t low, uint64_t high);
	void (*close)(void *state);
	void *state;
};
