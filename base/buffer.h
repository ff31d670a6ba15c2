/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A growable byte buffer with a fixed limit. A failed append leaves the bytes unchanged and sets
 * `error`, and all later appends fail too, so a writer may append many times and check once.
 */
#include <stddef.h>
#include <stdint.h>

struct buffer {
	uint8_t *bytes; /* NULL until the first append */
	size_t size;
	size_t capacity;
	size_t limit; /* bytes */
	int error; /* of the first failure: -E2BIG over the limit, or -ENOMEM; 0 = none */
};

void buffer_init(struct buffer *b, size_t limit);
void buffer_deinit(struct buffer *b);
int buffer_append(struct buffer *b, const void *bytes, size_t size);
int buffer_string(struct buffer *b, const char *text); /* without its NUL */
int buffer_printf(struct buffer *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns space for SIZE bytes at the end; the caller fills it and adds to `size`. NULL on failure.
 */
void *buffer_room(struct buffer *b, size_t size);
