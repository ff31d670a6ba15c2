/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A growing run of bytes with a limit that its owner names at the start. An append that fails
 * leaves the buffer as it was and is remembered in `error`, so a writer may append many times and
 * check once.
 */
#include <stddef.h>
#include <stdint.h>

struct buffer {
	uint8_t *bytes; /* NULL until the first append */
	size_t size;
	size_t capacity;
	size_t limit; /* bytes */
	int error; /* 0, -E2BIG over the limit, or -ENOMEM; the first failure stays */
};

void buffer_init(struct buffer *b, size_t limit);
void buffer_deinit(struct buffer *b);
int buffer_append(struct buffer *b, const void *bytes, size_t size);
int buffer_string(struct buffer *b, const char *text); /* without its NUL */
int buffer_printf(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for SIZE bytes at the end; the caller fills them and adds to `size`. NULL on failure. */
void *buffer_room(struct buffer *b, size_t size);
