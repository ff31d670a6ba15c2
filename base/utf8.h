/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes untrusted names safe for protobuf strings and terminals. */
#include <stdbool.h>
#include <stddef.h>

/* Returns the length of the well-formed sequence at TEXT, within SIZE bytes; 0 if there is none. */
size_t utf8_length(const char *text, size_t size);
/*
 * Whether all SIZE bytes are well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms) without
 * control characters: below U+0020, and U+007F to U+009F.
 */
bool utf8_is_clean(const char *text, size_t size);
/* Replaces each byte that is not part of well-formed UTF-8 with '?', in place. */
void utf8_repair(char *text, size_t size);
/* Replaces each byte that keeps TEXT from being clean with '?', in place. */
void utf8_clean(char *text, size_t size);
