/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Globs for names of functions: `*` any text, `?` any byte, `[a-z]` and `[!a-z]` one byte of a set,
 * `\` takes the next byte literally. Unlike in fnmatch(3), what is part of such names is literal:
 *
 *	main.(*T).F          `*` of a Go receiver: after `.(`, unless `)` follows
 *	main.Map[...]        `[...]` and `[go.` of Go's generics
 *	V::operator[]        `[]`
 *	f[abi:cxx11]         `[abi:` of C++
 *
 * The time is at most the product of both lengths, whatever the pattern.
 */
#include <stdbool.h>
#include <stddef.h>

/* Whether GLOB matches all SIZE bytes of TEXT. */
bool glob_matches(const char *glob, const char *text, size_t size);
/* False: GLOB matches exactly one text. */
bool glob_has_wildcards(const char *glob);
