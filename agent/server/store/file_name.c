/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/store/file_name.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <xxhash.h>

/* In 2262: the limit of int64_t nanoseconds, less the longest window. */
static const int64_t LATEST_TENTHS = INT64_C(92200000000);
static const uint32_t LONGEST_TENTHS = 10 * 7 * 24 * 3600;
static const char SUFFIX[] = ".pb.gz", MINUTES[] = ".minutes-", MERGED[] = ".merged";

enum { HASH_LENGTH = 9 }; /* `-0123abcd` */

static bool file_name_plain(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

static void clean(const char *label, char *out, size_t size)
{
	size_t length = 0;

	for (; label[length] && length + 1 < size; length++)
		out[length] = file_name_plain(label[length]) ? label[length] : '_';
	if (!length)
		out[length++] = '_';
	out[length] = 0;
}

/*
 * If cleaning changes LABEL, appends a hash that distinguishes it from other labels with the same
 * cleaned form. A sequence number would not do: the order may differ in the next window.
 */
void file_name_clean(const char *label, char out[FILE_NAME_LABEL_BYTES])
{
	size_t length = strlen(label);

	clean(label, out, FILE_NAME_LABEL_BYTES);
	if (!strcmp(label, out))
		return;
	clean(label, out, FILE_NAME_LABEL_BYTES - HASH_LENGTH);
	snprintf(out + strlen(out), HASH_LENGTH + 1, "-%08x", (uint32_t)XXH3_64bits(label, length));
}

bool file_name_init(struct file_name *n, const char *label, int64_t time_ns, int64_t duration_ns)
{
	const int64_t half = FILE_NAME_TENTH_NS / 2;
	int64_t time, duration;

	if (time_ns < 0 || duration_ns < 0 || time_ns > INT64_MAX - half ||
		duration_ns > INT64_MAX - half - time_ns)
		return false;
	time = (time_ns + half) / FILE_NAME_TENTH_NS;
	duration = (time_ns + duration_ns + half) / FILE_NAME_TENTH_NS - time;
	if (time > LATEST_TENTHS || duration > LONGEST_TENTHS)
		return false;
	n->time_tenths = time;
	n->duration_tenths = (uint32_t)duration;
	n->kind = label ? FILE_KIND_GROUP : FILE_KIND_WINDOW;
	n->generation = 1;
	n->minutes = 0;
	n->label[0] = 0;
	if (label)
		file_name_clean(label, n->label);
	return true;
}

/* `.7`, or "" for a whole second. */
static void format_tenth(char *text, size_t size, int64_t tenths)
{
	if (tenths % 10)
		snprintf(text, size, ".%d", (int)(tenths % 10));
	else
		*text = 0;
}

/* What follows the times. */
static void format_rest(const struct file_name *n, char *text, size_t size)
{
	char generation[8] = "";

	if (n->generation > 1)
		snprintf(generation, sizeof(generation), ".%u", (unsigned int)n->generation);
	switch (n->kind) {
	case FILE_KIND_GROUP:
		snprintf(text, size, "-%s", n->label);
		break;
	case FILE_KIND_WINDOW:
		snprintf(text, size, "%s", generation);
		break;
	case FILE_KIND_MINUTES:
		snprintf(text, size, "%s%x%s", MINUTES, (unsigned int)n->minutes, generation);
		break;
	case FILE_KIND_MERGED:
		snprintf(text, size, "%s%s", MERGED, generation);
		break;
	}
}

void file_name_format(const struct file_name *n, char *path, size_t size)
{
	time_t seconds = (time_t)(n->time_tenths / 10);
	char day[16] = "", clock[24] = "", tenth[4], length_tenth[4];
	char rest[FILE_NAME_LABEL_BYTES + 24] = "";
	struct tm t;

	if (gmtime_r(&seconds, &t)) {
		strftime(day, sizeof(day), "%Y-%m-%d", &t);
		strftime(clock, sizeof(clock), "%Y%m%dT%H%M%S", &t);
	}
	format_tenth(tenth, sizeof(tenth), n->time_tenths);
	format_tenth(length_tenth, sizeof(length_tenth), n->duration_tenths);
	format_rest(n, rest, sizeof(rest));
	snprintf(path, size, "%s/%s%sZ-%u%ss%s%s", day, clock, tenth, n->duration_tenths / 10,
		length_tenth, rest, SUFFIX);
}

/* Parses COUNT digits and advances *TEXT. -1 if they are missing. */
static int take_digits(const char **text, int count)
{
	int value = 0;

	for (; count > 0; count--, (*text)++) {
		if (!isdigit((unsigned char)**text))
			return -1;
		value = value * 10 + (**text - '0');
	}
	return value;
}

static bool take_char(const char **text, char wanted)
{
	if (**text != wanted)
		return false;
	(*text)++;
	return true;
}

/* Parses an optional `.7`. False for a dot without a digit. */
static bool take_tenth(const char **text, int *ret_tenth)
{
	int digit = 0;

	if (take_char(text, '.'))
		digit = take_digits(text, 1);
	if (digit < 0)
		return false;
	*ret_tenth = digit;
	return true;
}

bool file_name_is_day(const char *text)
{
	return strlen(text) == FILE_NAME_DAY_LENGTH && take_digits(&text, 4) >= 0 &&
	       take_char(&text, '-') && take_digits(&text, 2) >= 0 && take_char(&text, '-') &&
	       take_digits(&text, 2) >= 0;
}

static bool take_time(const char **text, int64_t *ret_tenths)
{
	struct tm t = { 0 };
	int date = take_digits(text, 8), clock, tenth;

	if (date < 0 || !take_char(text, 'T'))
		return false;
	clock = take_digits(text, 6);
	if (clock < 0 || !take_tenth(text, &tenth) || !take_char(text, 'Z'))
		return false;
	t.tm_year = date / 10000 - 1900;
	t.tm_mon = date / 100 % 100 - 1;
	t.tm_mday = date % 100;
	t.tm_hour = clock / 10000;
	t.tm_min = clock / 100 % 100;
	t.tm_sec = clock % 100;
	*ret_tenths = (int64_t)timegm(&t) * 10 + tenth;
	return *ret_tenths >= 0 && *ret_tenths <= LATEST_TENTHS;
}

static bool take_duration(const char **text, uint32_t *ret_tenths)
{
	uint32_t seconds = 0;
	int digit = take_digits(text, 1), tenth;

	if (digit < 0)
		return false;
	for (; digit >= 0 && seconds <= LONGEST_TENTHS / 10; digit = take_digits(text, 1))
		seconds = seconds * 10 + (uint32_t)digit;
	if (!take_tenth(text, &tenth) || !take_char(text, 's'))
		return false;
	*ret_tenths = seconds * 10 + (uint32_t)tenth;
	return *ret_tenths <= LONGEST_TENTHS;
}

static bool take_text(const char **text, const char *wanted)
{
	size_t length = strlen(wanted);

	if (strncmp(*text, wanted, length) != 0)
		return false;
	*text += length;
	return true;
}

static bool take_minutes(const char **text, uint16_t *ret_minutes)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;
	unsigned int minutes = 0;

	for (; **text && (digit = strchr(digits, **text)) != NULL; (*text)++) {
		minutes = minutes << 4 | (unsigned int)(digit - digits);
		if (minutes >> FILE_NAME_MINUTES)
			return false;
	}
	*ret_minutes = (uint16_t)minutes;
	return minutes != 0;
}

static bool take_generation(const char **text, uint16_t *ret_generation)
{
	uint16_t value = 0;
	const char *at = *text + 1;
	int digit;

	*ret_generation = 1;
	if (**text != '.' || (digit = take_digits(&at, 1)) < 0)
		return true;
	for (; digit >= 0; digit = take_digits(&at, 1)) {
		value = (uint16_t)(value * 10 + digit);
		if (value > FILE_NAME_GENERATIONS)
			return false;
	}
	*text = at;
	*ret_generation = value;
	return true;
}

static bool take_label(const char **text, char label[FILE_NAME_LABEL_BYTES])
{
	size_t left = strlen(*text), suffix = sizeof(SUFFIX) - 1;

	if (left < suffix + 1 || left - suffix >= FILE_NAME_LABEL_BYTES)
		return false;
	clean(*text, label, left - suffix + 1);
	*text += left - suffix;
	return true;
}

static bool take_rest(const char **text, struct file_name *n)
{
	n->generation = 1;
	if (take_char(text, '-')) {
		n->kind = FILE_KIND_GROUP;
		return take_label(text, n->label);
	}
	if (take_text(text, MERGED)) {
		n->kind = FILE_KIND_MERGED;
	} else if (take_text(text, MINUTES)) {
		n->kind = FILE_KIND_MINUTES;
		if (!take_minutes(text, &n->minutes))
			return false;
	} else {
		n->kind = FILE_KIND_WINDOW;
	}
	return take_generation(text, &n->generation);
}

/* A slot's file begins with it. */
static bool file_name_fits(const struct file_name *n)
{
	return n->kind == FILE_KIND_GROUP || n->kind == FILE_KIND_WINDOW ||
	       n->time_tenths % FILE_NAME_SLOT_TENTHS == 0;
}

bool file_name_parse(const char *path, struct file_name *ret_name)
{
	char again[FILE_NAME_BYTES];
	struct file_name n = { 0 };
	const char *at = path + FILE_NAME_DAY_LENGTH + 1;
	size_t length = strlen(path);

	if (length <= FILE_NAME_DAY_LENGTH + 1 || length >= sizeof(again))
		return false;
	if (!take_time(&at, &n.time_tenths) || !take_char(&at, '-') ||
		!take_duration(&at, &n.duration_tenths) || !take_rest(&at, &n) ||
		!file_name_fits(&n))
		return false;
	/* Refuses what we would not write: leading zeros, a 30th of February, other characters. */
	file_name_format(&n, again, sizeof(again));
	if (strcmp(again, path))
		return false;
	*ret_name = n;
	return true;
}
