/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes JSON (RFC 8259) into a buffer. The writer puts commas, quotes and escapes, and asserts
 * that its caller nests what it opens and names the members of objects. It never fails by itself:
 * the buffer's `error` says at the end whether all of it fitted.
 *
 * KEY is the name of a member of an object, and NULL in an array and at the top.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { JSON_DEPTH_LIMIT = 16 };

enum json_style {
	JSON_COMPACT, /* {"a":1,"b":[2,3]} */
	JSON_SPACED, /* {"a": 1, "b": [2, 3]} */
};

/* Its members are its own. */
struct json {
	struct buffer *out;
	enum json_style style; /* here */
	unsigned int depth;
	struct {
		char close; /* '}' or ']' */
		enum json_style style_outside;
		bool by_line, has_members;
	} levels[JSON_DEPTH_LIMIT];
};

void json_init(struct json *j, struct buffer *out, enum json_style style);
/* Everything is closed. Returns the buffer's error. */
int json_finish(struct json *j);

void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
/* The same with a line for each member: indented when spaced, else at the line's beginning. */
void json_object_by_line(struct json *j, const char *key);
void json_array_by_line(struct json *j, const char *key);
/* The same, and all in it is compact. */
void json_object_compact(struct json *j, const char *key);
void json_close(struct json *j); /* the innermost one that is open */

/* Bytes that are not UTF-8 become U+FFFD, one each. */
void json_text(struct json *j, const char *key, const char *text);
void json_text_bytes(struct json *j, const char *key, const char *text, size_t size);
void json_number(struct json *j, const char *key, uint64_t number);
void json_signed(struct json *j, const char *key, int64_t number);
/* With DECIMALS digits behind the point; what is not finite is null. */
void json_decimal(struct json *j, const char *key, double number, int decimals);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);
void json_base64(struct json *j, const char *key, const void *bytes, size_t size);
