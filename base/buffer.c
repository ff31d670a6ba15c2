/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void buffer_init(struct buffer *b, size_t limit)
{
	*b = (struct buffer){ .limit = limit };
}

void buffer_deinit(struct buffer *b)
{
	free(b->bytes);
	*b = (struct buffer){ .limit = b->limit };
}

void *buffer_room(struct buffer *b, size_t size)
{
	size_t need;
	int err;

	if (b->error)
		return NULL;
	if (__builtin_add_overflow(b->size, size, &need))
		need = SIZE_MAX;
	err = array_reserve(b->bytes, b->capacity, need, b->limit);
	if (err) {
		b->error = err;
		return NULL;
	}
	return b->bytes + b->size;
}

int buffer_append(struct buffer *b, const void *bytes, size_t size)
{
	void *room;

	if (size == 0)
		return b->error;
	room = buffer_room(b, size);
	if (!room)
		return b->error;
	memcpy(room, bytes, size);
	b->size += size;
	return 0;
}

int buffer_string(struct buffer *b, const char *text)
{
	return buffer_append(b, text, strlen(text));
}

int buffer_printf(struct buffer *b, const char *format, ...)
{
	va_list args, again;
	char *room;
	int size;

	va_start(args, format);
	va_copy(again, args);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	room = size >= 0 ? buffer_room(b, (size_t)size + 1) : NULL;
	if (room) {
		vsnprintf(room, (size_t)size + 1, format, again);
		b->size += (size_t)size;
	}
	va_end(again);
	return b->error;
}
