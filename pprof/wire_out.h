/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes fields of a message of Protocol Buffers. The caller says beforehand how many bytes they
 * have at most. Tags are of one byte: field numbers are below 16.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "pprof/wire.h"

enum {
	WIRE_TAG_MAX_BYTES = 1,
	WIRE_NUMBER_MAX_BYTES = 10,
};

struct wire_out {
	struct buffer *out;
	uint8_t *at;
};

/* False if there is no room for MAX_BYTES; the buffer says why. */
static inline bool wire_out_init(struct wire_out *w, struct buffer *out, size_t max_bytes)
{
	*w = (struct wire_out){ .out = out, .at = buffer_room(out, max_bytes) };
	return w->at;
}

/* What was written is in the buffer. */
static inline void wire_out_done(struct wire_out *w)
{
	w->out->size = (size_t)(w->at - w->out->bytes);
}

static inline void wire_put(struct wire_out *w, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		*w->at++ = (uint8_t)(number | 0x80);
	*w->at++ = (uint8_t)number;
}

/* A field of 0 is not there. */
static inline void wire_put_field(struct wire_out *w, unsigned int field, uint64_t number)
{
	if (!number)
		return;
	*w->at++ = (uint8_t)(field << 3 | WIRE_NUMBER);
	wire_put(w, number);
}

static inline void wire_put_bytes(
	struct wire_out *w, unsigned int field, const void *bytes, size_t size)
{
	*w->at++ = (uint8_t)(field << 3 | WIRE_BYTES);
	wire_put(w, size);
	w->at = (uint8_t *)mempcpy(w->at, bytes, size);
}

/* Begins a field that has other fields or numbers; for wire_end(). */
static inline uint8_t *wire_begin(struct wire_out *w, unsigned int field)
{
	*w->at++ = (uint8_t)(field << 3 | WIRE_BYTES);
	return w->at++;
}

/* Puts the size in front of what was written since; the room was for a size of one byte. */
static inline void wire_end(struct wire_out *w, uint8_t *begin)
{
	const size_t size = (size_t)(w->at - begin - 1);
	struct wire_out head = { .at = begin };
	size_t more = 0;

	for (size_t rest = size >> 7; rest; rest >>= 7)
		more++;
	if (more)
		memmove(begin + 1 + more, begin + 1, size);
	w->at += more;
	wire_put(&head, size);
}
