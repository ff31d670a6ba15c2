/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/export/pattern.h"

#include <errno.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	MATCH_LIMIT = 100000, /* backtracking steps: some milliseconds */
	HEAP_LIMIT_KIB = 1024,
	NESTING_LIMIT = 50,
	NAME_BYTES = 64,
};

struct pattern {
	pcre2_code *code;
	pcre2_match_data *groups;
	pcre2_match_context *limits;
	int group_count; /* of the last match; group 0 is the whole */
};

static pcre2_code *compile(const char *text, int *ret_error, PCRE2_SIZE *ret_at)
{
	/* $ means the end and not also before a last newline; \C would split characters. */
	const uint32_t options = PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF |
				 PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *code;

	if (!context)
		return NULL;
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	pcre2_set_parens_nest_limit(context, NESTING_LIMIT);
	pcre2_set_max_pattern_length(context, PATTERN_BYTES);
	code = pcre2_compile(
		(PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, ret_error, ret_at, context);
	pcre2_compile_context_free(context);
	return code;
}

static void explain(int error, size_t at, char message[PATTERN_MESSAGE_BYTES])
{
	char text[100] = "";

	pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof(text));
	snprintf(message, PATTERN_MESSAGE_BYTES, "%s at character %zu", text, at + 1);
}

int pattern_create(
	const char *text, struct pattern **ret_pattern, char message[PATTERN_MESSAGE_BYTES])
{
	struct pattern *p = calloc(1, sizeof(*p));
	int error = PCRE2_ERROR_NOMEMORY;
	PCRE2_SIZE at = 0;

	*message = 0;
	if (!p)
		return -ENOMEM;
	p->code = compile(text, &error, &at);
	if (!p->code) {
		explain(error, at, message);
		pattern_destroy(p);
		return -EINVAL;
	}
	p->groups = pcre2_match_data_create_from_pattern(p->code, NULL);
	p->limits = pcre2_match_context_create(NULL);
	if (!p->groups || !p->limits) {
		pattern_destroy(p);
		return -ENOMEM;
	}
	pcre2_set_match_limit(p->limits, MATCH_LIMIT);
	pcre2_set_heap_limit(p->limits, HEAP_LIMIT_KIB);
	*ret_pattern = p;
	return 0;
}

void pattern_destroy(struct pattern *p)
{
	if (!p)
		return;
	pcre2_match_context_free(p->limits);
	pcre2_match_data_free(p->groups);
	pcre2_code_free(p->code);
	free(p);
}

int pattern_match(struct pattern *p, const char *text, size_t size)
{
	p->group_count = 0;
	int count = pcre2_match(p->code, (PCRE2_SPTR)text, size, 0, 0, p->groups, p->limits);

	if (count == PCRE2_ERROR_NOMATCH)
		return 0;
	if (count < 0)
		return -E2BIG;
	p->group_count = count;
	return 1;
}

/* ---- references ----------------------------------------------------------------------------- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Go's rule: only digits are a number, and one that is too large is no group. */
static int group_of(const struct pattern *p, const char *name)
{
	int number = 0;

	if (strspn(name, "0123456789") != strlen(name)) {
		number = pcre2_substring_number_from_name(p->code, (PCRE2_SPTR)name);
		return number < 0 ? -1 : number;
	}
	for (; *name; name++) {
		number = number * 10 + (*name - '0');
		if (number >= p->group_count)
			return -1;
	}
	return number;
}

static void append_group(
	const struct pattern *p, const char *text, const char *name, struct buffer *out)
{
	const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(p->groups);
	int group = group_of(p, name);
	PCRE2_SIZE start, end;

	if (group < 0 || group >= p->group_count)
		return;
	start = offsets[2 * group];
	end = offsets[2 * group + 1];
	if (start != PCRE2_UNSET && end > start)
		(void)buffer_append(out, text + start, end - start);
}

/* The name behind a $, and where the template goes on; false when it is no reference. */
static bool take_name(const char **template, char name[NAME_BYTES])
{
	bool braces = **template == '{';
	const char *start = *template + braces, *end = start;

	while (is_word(*end))
		end++;
	if (end == start || (braces && *end != '}') || end - start >= NAME_BYTES)
		return false;
	memcpy(name, start, (size_t)(end - start));
	name[end - start] = 0;
	*template = end + braces;
	return true;
}

int pattern_expand(
	const struct pattern *p, const char *text, const char *template, struct buffer *out)
{
	while (*template) {
		size_t plain = strcspn(template, "$");
		char name[NAME_BYTES];

		(void)buffer_append(out, template, plain);
		template += plain;
		if (!*template)
			break;
		template ++;
		if (*template == '$') {
			(void)buffer_append(out, template ++, 1);
		} else if (take_name(&template, name)) {
			append_group(p, text, name, out);
		} else {
			(void)buffer_append(out, "$", 1);
		}
	}
	return out->error;
}
