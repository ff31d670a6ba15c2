/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Chooses the functions of one file: those that patterns name and that can be probed, and, of the
 * others that patterns name, why they cannot be. Knows the file by its index only, which must be
 * one with functions. Nothing in an index is trusted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/functions/patterns.h"
#include "symbolizer/index/functions.h"

enum function_refusal {
	FUNCTION_RESOLVER,
	FUNCTION_UNCONFIRMED,
	FUNCTION_UNDECODED,
	FUNCTION_ENTRY_IS_RETURN,
	FUNCTION_ENTRY_MISREAD,
	FUNCTION_TAIL_JUMP,
	FUNCTION_INDIRECT_JUMP,
	FUNCTION_NO_RETURN,
	FUNCTION_INLINED,
	FUNCTION_REFUSALS
};
/* The reason as the end of a sentence about the function: "it has no RET: it never returns". */
const char *function_refusal_text(enum function_refusal refusal);

struct chosen_function {
	uint32_t number; /* in the index */
	uint32_t aliases; /* further names of its address that patterns name as well */
	/*
	 * Calls that leave by a jump to another function do not come to a RET of this one: they are
	 * never complete.
	 */
	bool jumps_out;
};

struct refused_function {
	enum function_refusal refusal;
	/* In the index: a function, or for FUNCTION_INLINED the first of its inlined calls. */
	uint32_t number;
	uint32_t calls; /* FUNCTION_INLINED: how many inlined calls there are */
};

struct choose_options {
	const struct function_patterns *wanted;
	const struct function_patterns *unwanted; /* without BIN: functions of all files */
	const char *path; /* of the file, for patterns with BIN */
	bool is_program; /* the file is a target's program: patterns without BIN apply */
	bool exclude_vendor; /* no Go functions of vendored packages or of the module cache */
	/*
	 * Also find all that exists only inlined, which takes longer. If false that is done for
	 * patterns that name no function.
	 */
	bool find_inlined;
	size_t limit; /* of chosen functions */
};

struct choice {
	struct chosen_function *chosen; /* by ascending address */
	size_t chosen_count, chosen_capacity;
	struct refused_function *refused;
	size_t refused_count, refused_capacity;
	size_t probeable; /* more than chosen_count: over the limit */
	size_t excluded, vendored; /* names that patterns match, and that were left out */
	/* For each wanted pattern: 0 = it names nothing, not even an inlined function. */
	size_t *matches;
};

/* Whether a wanted pattern applies to the file at PATH, so that it needs an index with functions.
 */
bool choose_concerns(const struct function_patterns *wanted, const char *path, bool is_program);
/* Returns -ENOMEM, or -E2BIG if more functions are refused than can be listed. */
int choose_functions(
	const struct index *index, const struct choose_options *options, struct choice *ret_choice);
void choice_deinit(struct choice *choice);
