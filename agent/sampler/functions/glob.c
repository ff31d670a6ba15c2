/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/functions/glob.h"

#include <string.h>

#include "base/cleanup.h"

/* One element of a glob. */
struct glob_token {
	enum { GLOB_BYTE, GLOB_ANY_BYTE, GLOB_SET, GLOB_ANY_TEXT } kind;
	size_t size; /* its length in the glob */
	char byte; /* of GLOB_BYTE */
	const char *set; /* of GLOB_SET: after the bracket and `!` */
	const char *set_end; /* the closing bracket */
	bool negated;
};

static bool glob_bracket_is_literal(const char *at)
{
	static const char *const literals[] = { "[]", "[...]", "[go.", "[abi:" };

	for (size_t i = 0; i < ARRAY_SIZE(literals); i++) {
		if (!strncmp(at, literals[i], strlen(literals[i])))
			return true;
	}
	return false;
}

/* The star at AT belongs to the receiver in `main.(*T).F`. */
static bool glob_star_is_receiver(const char *glob, const char *at)
{
	return at - glob >= 2 && at[-1] == '(' && at[-2] == '.' && at[1] && at[1] != ')';
}

static struct glob_token glob_set_at(const char *at)
{
	struct glob_token token = { .kind = GLOB_SET, .set = at + 1 };

	token.negated = *token.set == '!' || *token.set == '^';
	token.set += token.negated;
	token.set_end = *token.set ? strchr(token.set + 1, ']') : NULL;
	if (!token.set_end || glob_bracket_is_literal(at))
		return (struct glob_token){ .kind = GLOB_BYTE, .size = 1, .byte = *at };
	token.size = (size_t)(token.set_end + 1 - at);
	return token;
}

/* AT is not at the end of GLOB. */
static struct glob_token glob_token_at(const char *glob, const char *at)
{
	struct glob_token byte = { .kind = GLOB_BYTE, .size = 1, .byte = *at };

	switch (*at) {
	case '\\':
		if (at[1])
			byte = (struct glob_token){ .kind = GLOB_BYTE, .size = 2, .byte = at[1] };
		return byte;
	case '?':
		return (struct glob_token){ .kind = GLOB_ANY_BYTE, .size = 1 };
	case '*':
		if (glob_star_is_receiver(glob, at))
			return byte;
		return (struct glob_token){ .kind = GLOB_ANY_TEXT, .size = 1 };
	case '[':
		return glob_set_at(at);
	default:
		return byte;
	}
}

static bool glob_set_has(const struct glob_token *token, char byte)
{
	unsigned char wanted = (unsigned char)byte;
	bool found = false;

	for (const char *at = token->set; at < token->set_end; at++) {
		unsigned char first = (unsigned char)*at, last = first;

		if (at[1] == '-' && at + 2 < token->set_end) {
			last = (unsigned char)at[2];
			at += 2;
		}
		found |= wanted >= first && wanted <= last;
	}
	return found != token->negated;
}

static bool glob_token_takes(const struct glob_token *token, char byte)
{
	switch (token->kind) {
	case GLOB_BYTE:
		return token->byte == byte;
	case GLOB_SET:
		return glob_set_has(token, byte);
	default:
		return true;
	}
}

/*
 * Only the last `*` is ever extended: what matched before it can stay, because a later star takes
 * whatever an earlier one could have left.
 */
bool glob_matches(const char *glob, const char *text, size_t size)
{
	const char *at = glob, *after_star = NULL, *end = text + size, *resume = NULL;

	while (text < end || *at) {
		struct glob_token token = { 0 };

		if (*at)
			token = glob_token_at(glob, at);
		if (*at && token.kind == GLOB_ANY_TEXT) {
			after_star = at += token.size;
			resume = text;
		} else if (*at && text < end && glob_token_takes(&token, *text)) {
			at += token.size;
			text++;
		} else if (after_star && resume < end) {
			at = after_star;
			text = ++resume;
		} else {
			return false;
		}
	}
	return true;
}

bool glob_has_wildcards(const char *glob)
{
	for (const char *at = glob; *at;) {
		struct glob_token token = glob_token_at(glob, at);

		if (token.kind != GLOB_BYTE)
			return true;
		at += token.size;
	}
	return false;
}
