/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/settings/setting_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct unit {
	const char *suffix;
	uint64_t factor;
};

static const struct unit duration_units[] = {
	{ "", 1000000000 },
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", 1000000000 },
	{ "m", UINT64_C(60000000000) },
	{ "h", UINT64_C(3600000000000) },
};

static const struct unit byte_units[] = {
	{ "", 1 },
	{ "K", 1 << 10 },
	{ "M", 1 << 20 },
	{ "G", 1 << 30 },
	{ "KiB", 1 << 10 },
	{ "MiB", 1 << 20 },
	{ "GiB", 1 << 30 },
};

/* Decimal digits, optionally with a fraction: `1.5s`. */
static bool setting_text_scaled(
	const char *text, const struct unit *units, size_t unit_count, uint64_t *ret_number)
{
	double value;
	char *end;

	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text || strspn(text, "0123456789.") != (size_t)(end - text))
		return false;
	for (size_t i = 0; i < unit_count; i++) {
		if (strcmp(end, units[i].suffix))
			continue;
		value *= (double)units[i].factor;
		if (value >= 9e18)
			return false;
		*ret_number = (uint64_t)value;
		return true;
	}
	return false;
}

static bool setting_text_number(const char *text, uint64_t *ret_number)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return !errno && !*end;
}

static bool setting_text_flag(const char *text, uint64_t *ret_number)
{
	if (!strcmp(text, "1") || !strcasecmp(text, "true") || !strcasecmp(text, "yes"))
		*ret_number = 1;
	else if (!strcmp(text, "0") || !strcasecmp(text, "false") || !strcasecmp(text, "no") ||
		 !*text)
		*ret_number = 0;
	else
		return false;
	return true;
}

bool setting_text_read(enum setting_type type, const char *text, uint64_t *ret_number)
{
	switch (type) {
	case SETTING_TYPE_FLAG:
		return setting_text_flag(text, ret_number);
	case SETTING_TYPE_NUMBER:
		return setting_text_number(text, ret_number);
	case SETTING_TYPE_DURATION:
		return setting_text_scaled(
			text, duration_units, ARRAY_SIZE(duration_units), ret_number);
	case SETTING_TYPE_BYTES:
		return setting_text_scaled(text, byte_units, ARRAY_SIZE(byte_units), ret_number);
	case SETTING_TYPE_TEXT:
	case SETTING_TYPE_LIST:
	case SETTING_TYPE_REPEATED:
		break;
	}
	return true;
}

bool setting_text_span(const char *text, uint32_t *ret_first, uint32_t *ret_last)
{
	unsigned long first, last;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	first = last = strtoul(text, &end, 10);
	if (*end == '-' && isdigit((unsigned char)end[1]))
		last = strtoul(end + 1, &end, 10);
	if (errno || *end || last < first || last > INT32_MAX)
		return false;
	*ret_first = (uint32_t)first;
	*ret_last = (uint32_t)last;
	return true;
}
