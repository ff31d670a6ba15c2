/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Addresses of code that a file's data has, such as tables of functions. They may be those of
 * labels in a function, too, for its computed jumps.
 */
#include "symbolizer/indexer/code/bare_blocks.h"

/* Reads them once, for gaps that are large enough. -ENOMEM. */
int bare_read_pointers(struct bare *b);
/* Notes the blocks of the gap whose address was found. */
void bare_note_pointers(const struct bare *b);
