/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Root functions: a user stack that ends in one of them is complete. */
#include <stdbool.h>

/* True for a thread's first function: it has no caller. */
bool root_function(const char *name);
/* True if only the program's entry code, which often has no symbol, calls this function. */
bool root_starts_program(const char *name);
