/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes JSON (RFC 8259) into a buffer. The writer adds commas, quotes and escapes, and asserts
 * that the caller closes what it opens and names the members of objects. No call fails on its own:
 * json_finish() reports whether everything fitted.
 *
 * KEY is the member's name inside an object, NULL inside an array and at the top level.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { JSON_DEPTH_LIMIT = 16, JSON_DOUBLE_BYTES = 32 };

enum json_style {
	JSON_COMPACT, /* {"a":1,"b":[2,3]} */
	JSON_SPACED, /* {"a": 1, "b": [2, 3]} */
};

/* All members are private. */
struct json {
	struct buffer *out;
	enum json_style style; /* at the current level */
	unsigned int depth;
	struct {
		char close; /* '}' or ']' */
		enum json_style style_outside;
		bool by_line, has_members;
	} levels[JSON_DEPTH_LIMIT];
};

void json_init(struct json *j, struct buffer *out, enum json_style style);
/* Asserts that everything is closed. Returns the buffer's error. */
int json_finish(struct json *j);

void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
/* Each member gets its own line, indented if the style is JSON_SPACED. */
void json_object_by_line(struct json *j, const char *key);
void json_array_by_line(struct json *j, const char *key);
/* The object and everything in it is JSON_COMPACT. */
void json_object_compact(struct json *j, const char *key);
void json_close(struct json *j); /* the innermost open object or array */

/* Each byte that is not valid UTF-8 becomes U+FFFD. */
void json_text(struct json *j, const char *key, const char *text);
void json_text_bytes(struct json *j, const char *key, const char *text, size_t size);
void json_number(struct json *j, const char *key, uint64_t number);
void json_signed(struct json *j, const char *key, int64_t number);
/* With DECIMALS digits after the point; infinities and NaN become null. */
void json_decimal(struct json *j, const char *key, double number, int decimals);
/* With as many digits as it takes to read the same number back; infinities and NaN become null. */
void json_double(struct json *j, const char *key, double number);
/* What json_double() writes, in TEXT or static. */
const char *json_double_text(double number, char text[JSON_DOUBLE_BYTES]);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
void json_base64(struct json *j, const char *key, const void *bytes, size_t size);
