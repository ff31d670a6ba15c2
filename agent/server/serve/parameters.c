/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/serve/parameters.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "agent/server/serve/serve.h"

enum { BASIC_BYTES = SERVE_TOKEN_BYTES + 256 }; /* decoded `user:password` */

bool parameters_number(const char *text, uint64_t limit, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		unsigned int digit = (unsigned int)(*text - '0');

		if (!isdigit((unsigned char)*text) || number > (limit - digit) / 10 ||
			digit > limit)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return true;
}

static bool same_secret(const char *given, size_t length, const char *secret)
{
	volatile unsigned char difference = 0;

	if (length != strlen(secret))
		return false;
	for (size_t i = 0; i < length; i++)
		difference |= (unsigned char)(given[i] ^ secret[i]);
	return !difference;
}

/* RFC 4648, section 4; -1 for a character outside the alphabet. */
static int base64_value(char c)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(alphabet, c) : NULL;

	return at ? (int)(at - alphabet) : -1;
}

/* Decodes up to the padding. False if TEXT is not base64 or too long. */
static bool decode(const char *text, char *out, size_t size, size_t *ret_length)
{
	uint32_t bits = 0;
	unsigned int held = 0;
	size_t length = 0;

	for (; *text && *text != '='; text++) {
		int value = base64_value(*text);

		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
		held += 6;
		if (held < 8)
			continue;
		held -= 8;
		if (length == size)
			return false;
		out[length++] = (char)(bits >> held);
	}
	*ret_length = length;
	return strspn(text, "=") == strlen(text);
}

static bool basic_authorized(const char *text, const char *token)
{
	char pair[BASIC_BYTES];
	const char *colon;
	size_t length;

	if (!decode(text, pair, sizeof(pair), &length))
		return false;
	colon = memchr(pair, ':', length);
	if (!colon)
		return false;
	return same_secret(colon + 1, length - (size_t)(colon + 1 - pair), token);
}

bool parameters_authorized(const char *header, const char *token)
{
	size_t scheme = strcspn(header, " ");
	const char *rest = header + scheme + strspn(header + scheme, " ");

	if (scheme == strlen("Bearer") && !strncasecmp(header, "Bearer", scheme))
		return same_secret(rest, strlen(rest), token);
	if (scheme == strlen("Basic") && !strncasecmp(header, "Basic", scheme))
		return basic_authorized(rest, token);
	return false;
}

bool parameters_same_origin(const char *origin, const char *host)
{
	static const char scheme[] = "http://";

	return !strncasecmp(origin, scheme, sizeof(scheme) - 1) &&
	       !strcasecmp(origin + sizeof(scheme) - 1, host);
}
