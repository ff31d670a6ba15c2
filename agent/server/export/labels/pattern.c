/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "agent/server/export/labels/pattern.h"

#include <errno.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "agent/server/export/labels/re2.h"
#include "base/cleanup.h"

enum {
	TRANSLATED_BYTES = 8 * PATTERN_BYTES, /* \s becomes 14 bytes */
	MATCH_LIMIT = 100000, /* backtracking steps: some milliseconds */
	HEAP_LIMIT_KIB = 1024,
	NESTING_LIMIT = 50,
	NAME_BYTES = 64,
};

/* Group names in a template, as Go has them. */
static const char REFERENCE_NAME[] = "[\\p{L}\\p{Nd}_]+";

struct pattern {
	pcre2_code *code, *reference_name;
	pcre2_match_data *groups, *reference;
	pcre2_match_context *limits;
	int group_count; /* of the last match, including group 0, the whole match */
};

static pcre2_code *compile(const char *text, int *ret_error, PCRE2_SIZE *ret_at)
{
	/*
	 * Prometheus compiles ^(?s:TEXT)$: a dot also matches a line break. $ matches at the end
	 * only, not before a final line break; (?m)^ also matches after a final line break; \C
	 * would split characters.
	 */
	const uint32_t options = PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_UTF | PCRE2_DOTALL |
				 PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX |
				 PCRE2_NEVER_BACKSLASH_C;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *code;

	if (!context)
		return NULL;
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	pcre2_set_parens_nest_limit(context, NESTING_LIMIT);
	pcre2_set_max_pattern_length(context, TRANSLATED_BYTES);
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

/* NULL on error; MESSAGE says what is wrong if TEXT is invalid. */
static pcre2_code *compile_re2(const char *text, char message[PATTERN_MESSAGE_BYTES])
{
	autocall(buffer_deinit) struct buffer translated;
	int error = PCRE2_ERROR_NOMEMORY;
	PCRE2_SIZE at = 0;
	pcre2_code *code;

	buffer_init(&translated, TRANSLATED_BYTES + 1);
	if (strlen(text) > PATTERN_BYTES) {
		snprintf(message, PATTERN_MESSAGE_BYTES, "longer than %d bytes", PATTERN_BYTES);
		return NULL;
	}
	(void)re2_to_pcre2(text, &translated);
	if (buffer_append(&translated, "", 1))
		return NULL;
	code = compile((const char *)translated.bytes, &error, &at);
	if (code)
		return code;
	/* Report the position in the user's pattern, if PCRE2 rejects that as well. */
	pcre2_code_free(compile(text, &error, &at));
	explain(error, at, message);
	return NULL;
}

static int make_matchers(struct pattern *p)
{
	int error;
	PCRE2_SIZE at;

	p->groups = pcre2_match_data_create_from_pattern(p->code, NULL);
	p->limits = pcre2_match_context_create(NULL);
	p->reference_name = pcre2_compile((PCRE2_SPTR)REFERENCE_NAME, PCRE2_ZERO_TERMINATED,
		PCRE2_ANCHORED | PCRE2_UTF, &error, &at, NULL);
	p->reference = pcre2_match_data_create(1, NULL);
	if (!p->groups || !p->limits || !p->reference_name || !p->reference)
		return -ENOMEM;
	pcre2_set_match_limit(p->limits, MATCH_LIMIT);
	pcre2_set_heap_limit(p->limits, HEAP_LIMIT_KIB);
	return 0;
}

int pattern_create(
	const char *text, struct pattern **ret_pattern, char message[PATTERN_MESSAGE_BYTES])
{
	struct pattern *p = calloc(1, sizeof(*p));
	int err;

	*message = 0;
	if (!p)
		return -ENOMEM;
	p->code = compile_re2(text, message);
	if (p->code)
		err = make_matchers(p);
	else
		err = *message ? -EINVAL : -ENOMEM;
	if (err) {
		pattern_destroy(p);
		return err;
	}
	*ret_pattern = p;
	return 0;
}

void pattern_destroy(struct pattern *p)
{
	if (!p)
		return;
	pcre2_match_context_free(p->limits);
	pcre2_match_data_free(p->reference);
	pcre2_match_data_free(p->groups);
	pcre2_code_free(p->reference_name);
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

/* Go's rule: a name of digits only is a number; -1 if there is no such group. */
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

/* The length of the group name at the start of TEXT, or 0. */
static size_t reference_length(const struct pattern *p, const char *text)
{
	if (pcre2_match(p->reference_name, (PCRE2_SPTR)text, strlen(text), 0, 0, p->reference,
		    NULL) < 0)
		return 0;
	return pcre2_get_ovector_pointer(p->reference)[1];
}

/*
 * Takes the name after a $ and advances *TEMPLATE. False if it is not a reference. Cutting is
 * harmless: no group's name is that long.
 */
static bool take_name(const struct pattern *p, const char **template, char name[NAME_BYTES])
{
	bool braces = **template == '{';
	const char *start = *template + braces;
	size_t length = reference_length(p, start);

	if (!length || (braces && start[length] != '}'))
		return false;
	snprintf(name, NAME_BYTES, "%.*s", (int)length, start);
	*template = start + length + braces;
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
		} else if (take_name(p, &template, name)) {
			append_group(p, text, name, out);
		} else {
			(void)buffer_append(out, "$", 1);
		}
	}
	return out->error;
}
