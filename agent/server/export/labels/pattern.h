/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A regular expression that has to match the whole of a text, as Prometheus' relabelling has it:
 * RE2's syntax, and a dot matches a line break. It is PCRE2 that matches
 * (agent/server/export/labels/re2.h), so patterns that RE2 refuses, such as lookaround, are taken
 * as well. What RE2 guarantees by its construction is had by limits here: a match that backtracks
 * too much is given up with an error, so that no pattern stops the agent.
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
 * 1 = matches, 0 = does not, -E2BIG = given up. The groups stay with P until the next match; not
 * for several threads at once.
 */
int pattern_match(struct pattern *p, const char *text, size_t size);
/*
 * Appends TEMPLATE with its references ($1, ${1}, $name, ${name}, $$) replaced by the groups of the
 * last match on TEXT, as Go's regexp.Expand does: a name is as long as it can be ($1x is ${1x}),
 * and one that is unknown or did not take part is nothing.
 */
int pattern_expand(
	const struct pattern *p, const char *text, const char *template, struct buffer *out);
