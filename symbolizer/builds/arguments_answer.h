/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Plans as a sandboxed child has written them (symbolizer/sandbox/arguments_wire.h), now or when
 * they were kept. Nothing in them is trusted.
 */
#include <stdbool.h>
#include <stddef.h>

#include "symbolizer/arguments/argument_plan.h"

/* What all answers of one file take at most. */
enum { ARGUMENTS_ANSWERS_MAX_BYTES = 64 << 20 };

struct function_arguments {
	struct argument_plan *entry, *results; /* owned; NULL = nothing is known */
	bool split; /* because what is known is in a .dwo file, which is not read */
};

void function_arguments_deinit(struct function_arguments *arguments);

/*
 * Copies the plans of COUNT functions from the SIZE bytes at BYTES to RET_ITEMS. Returns -EBADMSG
 * if a plan is not sound, or -ENOMEM: all items are empty then.
 */
int arguments_answer_take(
	const void *bytes, size_t size, size_t count, struct function_arguments *ret_items);
