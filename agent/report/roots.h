/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The functions at which a thread's user stack begins: a stack that ends in one is complete. */
#include <stdbool.h>

/* Nothing calls this function. */
bool root_function(const char *name);
/* Only the program's entry code, which is often without a name, calls this function. */
bool root_starts_program(const char *name);
/*
 * The frames that a walk found outside of this root are not its callers: they belong to a goroutine
 * that the thread no longer runs.
 */
bool root_hides_callers(const char *name);
