/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * RE2's syntax for PCRE2, where the two take the same pattern and mean different things by it
 * (https://github.com/google/re2/wiki/Syntax, pcre2pattern(3)): the vertical tab belongs to \s in
 * PCRE2 alone, \v is any vertical space there, a hyphen behind a class such as \w is an error
 * there, and PCRE2 10.43 has repetitions such as {,3} that are plain text in RE2.
 *
 * What only PCRE2 knows (lookaround, back references, possessive quantifiers) stays as it is.
 */
#include "base/buffer.h"

/* Appends PATTERN as PCRE2 takes it. -E2BIG, -ENOMEM. */
int re2_to_pcre2(const char *pattern, struct buffer *out);
