/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A regular expression that must match a whole text, as in Prometheus' relabelling: RE2's syntax,
 * and a dot matches a line break. PCRE2 does the matching (agent/server/export/labels/re2.h), so
 * patterns that RE2 refuses, such as lookaround, are accepted as well. RE2 bounds its running time
 * by construction; here limits do: a match that backtracks too much fails, so that no pattern
 * stalls the agent.
 */
#include <stddef.h>

#include "base/buffer.h"

struct pattern;

enum { PATTERN_BYTES = 4096, PATTERN_MESSAGE_BYTES = 160 };

/* -EINVAL: MESSAGE says what is wrong with TEXT and where. */
int pattern_create(
	const char *text, struct pattern **ret_pattern, char message[PATTERN_MESSAGE_BYTES]);
void pattern_destroy(struct pattern *p);
/*
 * Returns 1 if TEXT matches, 0 if not, -E2BIG if the match exceeded its limits. P keeps the groups
 * until the next match; not thread-safe.
 */
int pattern_match(struct pattern *p, const char *text, size_t size);
/*
 * Appends TEMPLATE with its references ($1, ${1}, $name, ${name}, $$) replaced by the groups of the
 * last match on TEXT, like Go's regexp.Expand: names are as long as possible ($1x is ${1x}), and an
 * unknown or unmatched group expands to nothing.
 */
int pattern_expand(
	const struct pattern *p, const char *text, const char *template, struct buffer *out);
