/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Chooses kernel functions by patterns, from the text of the kernel's lists. A function is a name
 * in the kernel or in a module; several functions of the same name (static ones of different files)
 * are one, with several addresses. Knows no probe.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/functions/patterns.h"
#include "agent/sampler/kernel_functions/kernel_lists.h"

enum kernel_refusal {
	KERNEL_NOT_REFUSED = 0,
	KERNEL_NOT_TRACEABLE,
	KERNEL_FORBIDDEN,
	KERNEL_NOT_ATTACHED, /* set by the owner: the kernel refused the probe */
	KERNEL_REFUSALS
};
/* The reason as the end of a sentence about the function. */
const char *kernel_refusal_text(enum kernel_refusal refusal);

struct kernel_function {
	char *name;
	char *binary; /* "kernel", or the module in brackets */
	uint64_t *addresses; /* kaddr */
	size_t address_count, address_capacity;
	uint32_t aliases; /* further names of its code that patterns name as well */
	enum kernel_refusal refusal;
	int err; /* KERNEL_NOT_ATTACHED: a negative errno */
	uint32_t number; /* of the owner */
	bool numbered; /* it has one, even if it could not be attached */
};

struct kernel_choice_options {
	const struct function_patterns *wanted; /* none has a BIN */
	const struct function_patterns *unwanted; /* those with a BIN do not apply */
	size_t limit; /* of functions that are not refused */
};

struct kernel_choice {
	struct kernel_function *functions; /* sorted by name; at most `limit` are not refused */
	size_t count, capacity;
	size_t probeable; /* may be over the limit: then there are no functions at all */
	size_t excluded;
	size_t *matches; /* of each wanted pattern: names of functions, refused ones included */
};

/*
 * Returns -EACCES if the kernel hides its addresses, -E2BIG if there are more functions than can be
 * listed, or -ENOMEM.
 */
int kernel_choice_make(const struct kernel_lists *lists,
	const struct kernel_choice_options *options, struct kernel_choice *ret_choice);
void kernel_choice_deinit(struct kernel_choice *choice);
