/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds where the functions that other sources have named begin and return, by decoding their code:
 * the last source, and only of an index that is requested with functions.
 */
#include "symbolizer/indexer/source.h"

/*
 * Returns -ENOMEM or -E2BIG. Without a decoder for the file's machine nothing is written: the index
 * has no functions then (index_has_functions()).
 */
int code_read_functions(struct source_build *b);
