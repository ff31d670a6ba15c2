/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/labels/re2.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* The length of {3}, {3,} or {3,5}; 0 if PATTERN does not begin with one. */
static size_t repetition_length(const char *pattern)
{
	const char *at = pattern + 1;

	if (!isdigit((unsigned char)*at))
		return 0;
	while (isdigit((unsigned char)*at))
		at++;
	if (*at == ',')
		at++;
	while (isdigit((unsigned char)*at))
		at++;
	return *at == '}' ? (size_t)(at + 1 - pattern) : 0;
}

/* The length of an escape with its argument: \n, \pL, \x{41}. */
static size_t escape_length(const char *pattern)
{
	size_t length = pattern[1] ? 2 : 1;
	const char *end;

	if (!pattern[1] || !strchr("xpPgkoN", pattern[1]) || pattern[2] != '{')
		return length;
	end = strchr(pattern, '}');
	return end ? (size_t)(end + 1 - pattern) : length;
}

/* The translation of an escape that RE2 and PCRE2 interpret differently; NULL if they agree. */
static const char *replaced_escape(char letter, bool in_class)
{
	switch (letter) {
	case 'v':
		return "\\x0b";
	case 's':
		return in_class ? "\\t\\n\\f\\r " : "[\\t\\n\\f\\r ]";
	case 'S':
		return in_class ? "\\S\\x0b" : "[^\\t\\n\\f\\r ]";
	default:
		return NULL;
	}
}

static const char *re2_escape(const char *pattern, bool in_class, struct buffer *out)
{
	const char *replaced = replaced_escape(pattern[1], in_class);
	size_t length = escape_length(pattern);

	if (replaced)
		(void)buffer_string(out, replaced);
	else
		(void)buffer_append(out, pattern, length);
	return pattern + length;
}

/* Between \Q and \E nothing is special. */
static const char *re2_quoted(const char *pattern, struct buffer *out)
{
	const char *end = strstr(pattern, "\\E");
	size_t length = end ? (size_t)(end + 2 - pattern) : strlen(pattern);

	(void)buffer_append(out, pattern, length);
	return pattern + length;
}

/* The length of [:alpha:] at the start of PATTERN, or 0. */
static size_t posix_class_length(const char *pattern)
{
	const char *end = pattern[1] == ':' ? strstr(pattern + 2, ":]") : NULL;

	return end ? (size_t)(end + 2 - pattern) : 0;
}

/* Translates one item of a class. A hyphen after an item that is itself a class is literal. */
static const char *re2_class_item(const char *pattern, struct buffer *out)
{
	size_t length = *pattern == '[' ? posix_class_length(pattern) : 0;
	bool is_class =
		length || (*pattern == '\\' && pattern[1] && strchr("sSwWdDpP", pattern[1]));

	if (*pattern == '\\') {
		/* \pL: an argument without braces. */
		length = strchr("pP", pattern[1]) && pattern[1] && pattern[2] && pattern[2] != '{';
		pattern = re2_escape(pattern, true, out);
	} else {
		length += !length;
	}
	(void)buffer_append(out, pattern, length);
	pattern += length;
	if (is_class && *pattern == '-' && pattern[1] != ']') {
		(void)buffer_string(out, "\\-");
		pattern++;
	}
	return pattern;
}

static const char *re2_class(const char *pattern, struct buffer *out)
{
	size_t opening = pattern[1] == '^' ? 2 : 1;

	/* A bracket that comes first is literal. */
	opening += pattern[opening] == ']';
	(void)buffer_append(out, pattern, opening);
	pattern += opening;
	while (*pattern && *pattern != ']')
		pattern = re2_class_item(pattern, out);
	return pattern;
}

int re2_to_pcre2(const char *pattern, struct buffer *out)
{
	while (*pattern) {
		if (pattern[0] == '\\' && pattern[1] == 'Q') {
			pattern = re2_quoted(pattern, out);
		} else if (*pattern == '\\') {
			pattern = re2_escape(pattern, false, out);
		} else if (*pattern == '[') {
			pattern = re2_class(pattern, out);
		} else {
			if (*pattern == '{' && !repetition_length(pattern))
				(void)buffer_string(out, "\\");
			(void)buffer_append(out, pattern++, 1);
		}
	}
	return out->error;
}
