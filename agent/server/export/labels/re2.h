/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Translates RE2's syntax for PCRE2 where both accept a pattern but give it different meanings
 * (https://github.com/google/re2/wiki/Syntax, pcre2pattern(3)): only in PCRE2 does \s include the
 * vertical tab, \v mean any vertical space and a hyphen behind a class such as \w fail, and PCRE2
 * 10.43 takes repetitions such as {,3}, which are plain text in RE2.
 *
 * Constructs only PCRE2 has (lookaround, back references, possessive quantifiers) are kept.
 */
#include "base/buffer.h"

/* Appends PATTERN in PCRE2's syntax. Returns -E2BIG or -ENOMEM. */
int re2_to_pcre2(const char *pattern, struct buffer *out);
