/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/utf8.h"

enum { LINE_BYTES = 2048 };

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static struct {
	enum log_level level;
	bool json;
} logger = { .level = LOG_INFO };

void log_configure(enum log_level level, bool json)
{
	logger.level = level;
	logger.json = json;
}

bool log_enabled(enum log_level level)
{
	return level <= logger.level;
}

bool log_rate_allows(struct log_rate *rate)
{
	return log_rate_allows_every(rate, UINT64_C(1000000000));
}

bool log_rate_allows_every(struct log_rate *rate, uint64_t interval_ns)
{
	uint64_t now = clock_monotonic_ns();

	if (rate->last_ns && now - rate->last_ns < interval_ns) {
		rate->held++;
		return false;
	}
	rate->last_ns = now;
	rate->held = 0;
	return true;
}

static void format_time(char *text, size_t size)
{
	uint64_t now = clock_real_ns();
	time_t seconds = (time_t)(now / 1000000000);
	struct tm utc;
	size_t used;

	gmtime_r(&seconds, &utc);
	used = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text + used, size - used, ".%03uZ", (unsigned int)(now / 1000000 % 1000));
}

/* Appends TEXT with quotes and backslashes escaped. */
static size_t put_escaped(char *line, size_t used, const char *text, size_t length)
{
	for (size_t i = 0; i < length && used + 8 < LINE_BYTES; i++) {
		if (text[i] == '"' || text[i] == '\\')
			line[used++] = '\\';
		line[used++] = text[i];
	}
	return used;
}

/* Turns `a=1 b="x y"` into `,"a":"1","b":"x y"`. */
static size_t put_json_fields(char *line, size_t used, const char *fields)
{
	while (*fields && used + 64 < LINE_BYTES) {
		size_t key = strcspn(fields, "= ");
		const char *value = fields + key + (fields[key] == '=');
		bool quoted = *value == '"';
		size_t length;

		value += quoted;
		length = strcspn(value, quoted ? "\"" : " ");
		used += (size_t)snprintf(line + used, LINE_BYTES - used, ",\"%.*s\":\"",
			(int)(key < 40 ? key : 40), fields);
		used = put_escaped(line, used, value, length);
		line[used++] = '"';
		fields = value + length;
		fields += strspn(fields, "\" ");
	}
	return used;
}

void log_line(enum log_level level, const char *message, const char *fields, ...)
{
	char line[LINE_BYTES + 16], time_text[40], field_text[LINE_BYTES / 2];
	size_t used;
	va_list args;

	if (!log_enabled(level))
		return;
	va_start(args, fields);
	vsnprintf(field_text, sizeof(field_text), fields, args);
	va_end(args);
	utf8_clean(field_text, strlen(field_text), true);
	format_time(time_text, sizeof(time_text));
	if (logger.json) {
		used = (size_t)snprintf(line, LINE_BYTES,
			"{\"time\":\"%s\",\"level\":\"%s\",\"msg\":\"", time_text,
			level_names[level]);
		used = put_escaped(line, used, message, strlen(message));
		line[used++] = '"';
		used = put_json_fields(line, used, field_text);
		line[used++] = '}';
	} else {
		used = (size_t)snprintf(
			line, LINE_BYTES, "time=%s level=%s msg=\"", time_text, level_names[level]);
		used = put_escaped(line, used, message, strlen(message));
		used += (size_t)snprintf(line + used, LINE_BYTES - used, "\"%s%s",
			*field_text ? " " : "", field_text);
		if (used > LINE_BYTES - 1)
			used = LINE_BYTES - 1;
	}
	line[used++] = '\n';
	(void)io_write_all(2, line, used);
}
