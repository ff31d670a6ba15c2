/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Why a user stack does not reach its thread's first function, and how a profile says so. */
#include <stdint.h>

#include "base/metrics.h"

/* Stands for the frames between the innermost and the outermost ones of a stack that is too deep.
 */
#define TRUNCATION_MIDDLE_MARK "[truncated: middle]"

/* Stands between code without a table and the caller that a search found for it. */
#define TRUNCATION_GUESS_MARK "[guessed]"

/* The reason of a stack with FLAGS (enum profile_stack_flags) and without a root. */
enum metric truncation_of(uint32_t flags);

/*
 * The name of the frame that stands for the callers that are missing: `[truncated: REASON]` with
 * the REASON of fathom_unwind_truncated_total. A constant. END is one of that counter's metrics.
 */
const char *truncation_mark(enum metric end);
