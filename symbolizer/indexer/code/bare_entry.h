/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The code at a file's entry point, from which stacks do not go on. */
#include "symbolizer/indexer/code/bare_blocks.h"

/*
 * Where the code ends that begins at LOW: behind the first instruction that does not go on, or
 * where a function begins that it calls, as musl's _start() has it; at HIGH at the latest.
 */
uint64_t bare_entry_end(const struct bare *b, uint64_t low, uint64_t high);
