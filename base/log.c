/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/json.h"
#include "base/utf8.h"

enum {
	FIELDS_BYTES = 1024,
	KEY_BYTES = 41,
	/*
	 * A field grows at most threefold as JSON (`a= ` becomes `,"a":""`), a backslash twofold.
	 * The rest is for the message, which is our own text.
	 */
	LINE_BYTES = 3 * FIELDS_BYTES + 2048,
};

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

	if (rate->last_ns && now - rate->last_ns < interval_ns)
		return false;
	rate->last_ns = now;
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

/* Writes `a=1 b="x y"` as the members `"a":"1","b":"x y"`. */
static void put_json_fields(struct json *j, const char *fields)
{
	while (*fields) {
		size_t key = strcspn(fields, "= ");
		char name[KEY_BYTES];
		const char *value = fields + key + (fields[key] == '=');
		bool quoted = *value == '"';
		size_t length;

		value += quoted;
		length = strcspn(value, quoted ? "\"" : " ");
		snprintf(name, sizeof(name), "%.*s", (int)MIN(key, sizeof(name)), fields);
		json_text_bytes(j, name, value, length);
		fields = value + length;
		fields += strspn(fields, "\" ");
	}
}

static void put_json_line(struct buffer *line, enum log_level level, const char *time_text,
	const char *message, const char *fields)
{
	struct json j;

	json_init(&j, line, JSON_COMPACT);
	json_object(&j, NULL);
	json_text(&j, "time", time_text);
	json_text(&j, "level", level_names[level]);
	json_text(&j, "msg", message);
	put_json_fields(&j, fields);
	json_close(&j);
	json_finish(&j);
}

static void put_logfmt_line(struct buffer *line, enum log_level level, const char *time_text,
	const char *message, const char *fields)
{
	buffer_printf(line, "time=%s level=%s msg=\"", time_text, level_names[level]);
	for (; *message; message++)
		buffer_printf(line, strchr("\"\\", *message) ? "\\%c" : "%c", *message);
	buffer_printf(line, "\"%s%s", *fields ? " " : "", fields);
}

void log_line(enum log_level level, const char *message, const char *fields, ...)
{
	char bytes[LINE_BYTES], time_text[40], field_text[FIELDS_BYTES];
	/* On the stack, so that a message about a lack of memory needs no memory. */
	struct buffer line = { (uint8_t *)bytes, .capacity = LINE_BYTES, .limit = LINE_BYTES };
	va_list args;

	if (!log_enabled(level))
		return;
	va_start(args, fields);
	vsnprintf(field_text, sizeof(field_text), fields, args);
	va_end(args);
	utf8_clean(field_text, strlen(field_text));
	format_time(time_text, sizeof(time_text));
	if (logger.json)
		put_json_line(&line, level, time_text, message, field_text);
	else
		put_logfmt_line(&line, level, time_text, message, field_text);
	buffer_string(&line, "\n");
	(void)io_write_all(2, line.bytes, line.size);
}
