/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Appends little-endian values to a buffer; the writers of malformed inputs use it. */
#include <string.h>

#include "base/buffer.h"

static inline void put_u8(struct buffer *b, uint8_t value)
{
	buffer_append(b, &value, sizeof(value));
}

static inline void put_u16(struct buffer *b, uint16_t value)
{
	buffer_append(b, &value, sizeof(value));
}

static inline void put_u32(struct buffer *b, uint32_t value)
{
	buffer_append(b, &value, sizeof(value));
}

static inline void put_u64(struct buffer *b, uint64_t value)
{
	buffer_append(b, &value, sizeof(value));
}

static inline void put_string(struct buffer *b, const char *text) /* including its NUL */
{
	buffer_append(b, text, strlen(text) + 1);
}

static inline void put_uleb128(struct buffer *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_u8(b, (uint8_t)(value | 0x80));
	put_u8(b, (uint8_t)value);
}

static inline void put_sleb128(struct buffer *b, int64_t value)
{
	for (; value < -0x40 || value >= 0x40; value >>= 7)
		put_u8(b, (uint8_t)(value | 0x80));
	put_u8(b, (uint8_t)(value & 0x7f));
}

static inline void put_zeros(struct buffer *b, size_t count)
{
	while (count--)
		put_u8(b, 0);
}

/* Overwrites a value written before: for lengths that are known only at the end. */
static inline void set_u32(struct buffer *b, size_t offset, uint32_t value)
{
	memcpy(b->bytes + offset, &value, sizeof(value));
}

static inline void set_u64(struct buffer *b, size_t offset, uint64_t value)
{
	memcpy(b->bytes + offset, &value, sizeof(value));
}
