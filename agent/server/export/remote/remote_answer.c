/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/utf8.h"

static const uint64_t MAX_PUSHBACK_MS = 24 * 3600 * UINT64_C(1000);

void answer_init(struct answer *answer)
{
	*answer = (struct answer){ .grpc_status = -1 };
}

/* Copies the trimmed value if LINE is the header NAME. */
static bool header_value(struct cursor line, const char *name, char *value, size_t size)
{
	size_t name_length = strlen(name), length;
	const char *text = cursor_bytes(&line, name_length);

	if (!text || strncasecmp(text, name, name_length) || cursor_u8(&line) != ':')
		return false;
	length = cursor_left(&line);
	text = cursor_bytes(&line, length);
	while (length && isspace((unsigned char)*text)) {
		text++;
		length--;
	}
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	length = MIN(length, size - 1);
	memcpy(value, text, length);
	value[length] = 0;
	utf8_clean(value, length);
	return true;
}

static int answer_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* gRPC over HTTP/2: grpc-message is percent-encoded; invalid sequences stay unchanged. */
static void percent_decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		int high = *from == '%' ? answer_hex_digit(from[1]) : -1;
		int low = high >= 0 ? answer_hex_digit(from[2]) : -1;

		*to++ = low >= 0 ? (char)(high << 4 | low) : *from;
		from += low >= 0 ? 2 : 0;
	}
	*to = 0;
	utf8_clean(text, (size_t)(to - text));
}

/* Only scheme and host: the rest may hold a session or a token. */
static void keep_origin(char *location)
{
	char *host = strstr(location, "://");
	char *at;

	if (!host) {
		location[0] = 0;
		return;
	}
	host += 3;
	host[strcspn(host, "/?#")] = 0;
	at = strrchr(host, '@');
	if (at)
		memmove(host, at + 1, strlen(at));
}

static void answer_parse_header(struct answer *answer, struct cursor line)
{
	char value[sizeof(answer->grpc_message)] = "";

	if (header_value(line, "content-type", value, sizeof(answer->content_type))) {
		memcpy(answer->content_type, value, sizeof(answer->content_type));
		answer->content_type[sizeof(answer->content_type) - 1] = 0;
	} else if (header_value(line, "grpc-status", value, sizeof(value))) {
		char *end;
		long status = strtol(value, &end, 10);

		answer->grpc_status = end != value && !*end && status >= 0 && status <= 16
					      ? (int)status
					      : 2; /* UNKNOWN, as the protocol demands */
	} else if (header_value(line, "grpc-message", value, sizeof(value))) {
		percent_decode(value);
		memcpy(answer->grpc_message, value, sizeof(value));
	} else if (header_value(line, "grpc-retry-pushback-ms", value, sizeof(value))) {
		uint64_t ms = isdigit((unsigned char)value[0]) ? strtoull(value, NULL, 10) : 0;

		answer->pushback_ns = MIN(ms, MAX_PUSHBACK_MS) * 1000000;
	} else if (header_value(
			   line, "retry-after", answer->retry_after, sizeof(answer->retry_after)) ||
		   header_value(line, "date", answer->date, sizeof(answer->date))) {
		return;
	} else if (header_value(line, "grpc-status-details-bin", answer->grpc_details,
			   sizeof(answer->grpc_details))) {
		/* A truncated text would decode to something else. */
		if (strlen(answer->grpc_details) == sizeof(answer->grpc_details) - 1)
			answer->grpc_details[0] = 0;
	} else if (header_value(line, "location", value, sizeof(value))) {
		keep_origin(value);
		memcpy(answer->location, value, sizeof(value));
	}
}

/* `HTTP/1.1 200 OK`, `HTTP/2 200`: starts a new answer and discards an interim one (1xx). */
static void begin_head(struct answer *answer, struct cursor line)
{
	size_t header_bytes = answer->header_bytes;
	size_t length = cursor_left(&line);
	const char *text = cursor_bytes(&line, length);
	const char *blank = text ? memchr(text, ' ', length) : NULL;
	long status = 0;

	answer_init(answer);
	answer->header_bytes = header_bytes;
	if (!blank || length - (size_t)(blank - text) < 4)
		return;
	for (int i = 1; i <= 3; i++) {
		if (!isdigit((unsigned char)blank[i]))
			return;
		status = status * 10 + (blank[i] - '0');
	}
	answer->http_status = status;
}

size_t answer_on_header(char *bytes, size_t one, size_t size, void *context)
{
	struct answer *answer = context;
	struct cursor line = cursor_over(bytes, size);

	(void)one;
	answer->header_bytes += size;
	if (answer->header_bytes > ANSWER_HEADER_BYTES) {
		answer->too_long = true;
		return 0;
	}
	if (size > 5 && !memcmp(bytes, "HTTP/", 5))
		begin_head(answer, line);
	else
		answer_parse_header(answer, line);
	return size;
}

size_t answer_on_body(char *bytes, size_t one, size_t size, void *context)
{
	struct answer *answer = context;
	size_t room = sizeof(answer->kept) - answer->kept_bytes;

	(void)one;
	answer->body_bytes += size;
	if (answer->body_bytes > ANSWER_BODY_BYTES) {
		answer->too_long = true;
		return 0;
	}
	room = MIN(room, size);
	memcpy(answer->kept + answer->kept_bytes, bytes, room);
	answer->kept_bytes += room;
	return size;
}

/* The string value of "message" in {"code":"…","message":"…"}; escapes become blanks. */
static size_t json_message(struct cursor body, char *text, size_t size)
{
	static const char key[] = "\"message\"";
	size_t used = 0, length = cursor_left(&body);
	const char *start = cursor_bytes(&body, length);
	const char *found = start ? memmem(start, length, key, sizeof(key) - 1) : NULL;
	struct cursor value;
	uint8_t c;

	if (!found)
		return 0;
	value = cursor_over(
		found + sizeof(key) - 1, length - (size_t)(found - start) - (sizeof(key) - 1));
	do
		c = cursor_u8(&value);
	while (!value.bad && (c == ':' || isspace(c)));
	if (c != '"')
		return 0;
	for (c = cursor_u8(&value); !value.bad && c != '"' && used + 1 < size;
		c = cursor_u8(&value)) {
		if (c == '\\') {
			c = cursor_u8(&value);
			c = c == '"' || c == '\\' || c == '/' ? c : ' ';
		}
		text[used++] = (char)c;
	}
	return used;
}

void answer_message(const struct answer *answer, char *text, size_t size)
{
	struct cursor body = cursor_over(answer->kept, answer->kept_bytes);
	size_t used = 0;

	if (answer->kept_bytes && answer->kept[0] == '{')
		used = json_message(body, text, size);
	for (; !used && used + 1 < size && cursor_left(&body);) {
		while (used + 1 < size && cursor_left(&body)) {
			char c = (char)cursor_u8(&body);

			if (c == '\n' || c == '\r')
				break;
			text[used++] = c;
		}
	}
	text[used] = 0;
	utf8_clean(text, used);
}
