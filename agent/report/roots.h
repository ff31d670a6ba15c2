/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The functions at which a thread's user stack begins: a stack that ends in one is complete. */
#include <stdbool.h>

/* Nothing calls this function. */
bool root_function(const char *name);
/* Only the program's entry code, which is often without a name, calls this function. */
bool root_starts_program(const char *name);
