/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"

void json_init(struct json *j, struct buffer *out, enum json_style style)
{
	*j = (struct json){ .out = out, .style = style };
}

int json_finish(struct json *j)
{
	assert(j->depth == 0);
	return j->out->error;
}

const char *json_double_text(double number, char text[JSON_DOUBLE_BYTES])
{
	if (!isfinite(number))
		return "null";
	for (int digits = 6; digits <= 17; digits++) {
		snprintf(text, JSON_DOUBLE_BYTES, "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	return text;
}

/* ---- structure ------------------------------------------------------------------------------ */

static void json_begin_line(struct json *j)
{
	buffer_string(j->out, "\n");
	for (unsigned int i = 0; j->style == JSON_SPACED && i < j->depth; i++)
		buffer_string(j->out, "  ");
}

static void json_put_escaped(struct json *j, const char *text, size_t size)
{
	size_t plain = 0; /* start of the run that needs no escapes */

	for (size_t i = 0, length; i < size; i += length) {
		unsigned char c = (unsigned char)text[i];

		length = utf8_length(text + i, size - i);
		if (length && c >= 0x20 && c != 0x7f && c != '"' && c != '\\')
			continue;
		buffer_append(j->out, text + plain, i - plain);
		if (!length)
			buffer_string(j->out, "\\ufffd");
		else if (c == '"' || c == '\\')
			buffer_printf(j->out, "\\%c", c);
		else
			buffer_printf(j->out, "\\u%04x", c);
		length = 1;
		plain = i + 1;
	}
	buffer_append(j->out, text + plain, size - plain);
}

/* Writes what precedes a value: comma, line break, key. */
static void json_begin_value(struct json *j, const char *key)
{
	if (j->depth) {
		const bool by_line = j->levels[j->depth - 1].by_line;

		assert((j->levels[j->depth - 1].close == '}') == (key != NULL));
		if (j->levels[j->depth - 1].has_members)
			buffer_string(j->out, j->style == JSON_SPACED && !by_line ? ", " : ",");
		j->levels[j->depth - 1].has_members = true;
		if (by_line)
			json_begin_line(j);
	} else {
		assert(!key);
	}
	if (!key)
		return;
	buffer_string(j->out, "\"");
	json_put_escaped(j, key, strlen(key));
	buffer_string(j->out, j->style == JSON_SPACED ? "\": " : "\":");
}

static void json_open(struct json *j, const char *key, char close, bool by_line)
{
	json_begin_value(j, key);
	assert(j->depth < JSON_DEPTH_LIMIT);
	buffer_string(j->out, close == '}' ? "{" : "[");
	j->levels[j->depth].close = close;
	j->levels[j->depth].by_line = by_line;
	j->levels[j->depth].has_members = false;
	j->levels[j->depth].style_outside = j->style;
	j->depth++;
}

void json_object(struct json *j, const char *key)
{
	json_open(j, key, '}', false);
}

void json_array(struct json *j, const char *key)
{
	json_open(j, key, ']', false);
}

void json_object_by_line(struct json *j, const char *key)
{
	json_open(j, key, '}', true);
}

void json_array_by_line(struct json *j, const char *key)
{
	json_open(j, key, ']', true);
}

void json_object_compact(struct json *j, const char *key)
{
	json_open(j, key, '}', false);
	j->style = JSON_COMPACT;
}

void json_close(struct json *j)
{
	assert(j->depth > 0);
	j->depth--;
	if (j->levels[j->depth].by_line && j->levels[j->depth].has_members &&
		j->style == JSON_SPACED)
		json_begin_line(j);
	buffer_append(j->out, &j->levels[j->depth].close, 1);
	j->style = j->levels[j->depth].style_outside;
}

/* ---- values --------------------------------------------------------------------------------- */

void json_text(struct json *j, const char *key, const char *text)
{
	json_text_bytes(j, key, text, strlen(text));
}

void json_text_bytes(struct json *j, const char *key, const char *text, size_t size)
{
	json_begin_value(j, key);
	buffer_string(j->out, "\"");
	json_put_escaped(j, text, size);
	buffer_string(j->out, "\"");
}

void json_number(struct json *j, const char *key, uint64_t number)
{
	json_begin_value(j, key);
	buffer_printf(j->out, "%" PRIu64, number);
}

void json_signed(struct json *j, const char *key, int64_t number)
{
	json_begin_value(j, key);
	buffer_printf(j->out, "%" PRId64, number);
}

void json_decimal(struct json *j, const char *key, double number, int decimals)
{
	json_begin_value(j, key);
	if (isfinite(number))
		buffer_printf(j->out, "%.*f", decimals, number);
	else
		buffer_string(j->out, "null");
}

void json_double(struct json *j, const char *key, double number)
{
	char text[JSON_DOUBLE_BYTES];

	json_begin_value(j, key);
	buffer_string(j->out, json_double_text(number, text));
}

void json_bool(struct json *j, const char *key, bool value)
{
	json_begin_value(j, key);
	buffer_string(j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	json_begin_value(j, key);
	buffer_string(j->out, "null");
}

void json_base64(struct json *j, const char *key, const void *bytes, size_t size)
{
	json_begin_value(j, key);
	buffer_string(j->out, "\"");
	base64_append(j->out, bytes, size);
	buffer_string(j->out, "\"");
}
