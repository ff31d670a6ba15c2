/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Making foreign names safe for protobuf strings and terminals. */
#include <stdbool.h>
#include <stddef.h>

/* Length of the well-formed sequence at TEXT, of which there are SIZE bytes; 0: there is none. */
size_t utf8_length(const char *text, size_t size);
/* True when all SIZE bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool utf8_valid(const char *text, size_t size);
/*
 * Replaces each byte that is not part of well-formed UTF-8 by '?', in place. With CONTROL set,
 * control characters (below 0x20, and 0x7f) too.
 */
void utf8_clean(char *text, size_t size, bool control);
