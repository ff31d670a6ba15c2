/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cursor.h"

uint64_t cursor_unsigned(struct cursor *c, unsigned int size)
{
	const void *p = size <= 8 ? cursor_bytes(c, size) : NULL;
	uint64_t value = 0;

	if (!p) {
		c->bad = true;
		return 0;
	}
	memcpy(&value, p, size);
	return value;
}

uint64_t cursor_uleb128(struct cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(c);
		if (shift < 63 || (shift == 63 && (byte & 0x7e) == 0))
			value |= (uint64_t)(byte & 0x7f) << shift;
		else if (byte & 0x7f)
			c->bad = true;
		shift += shift < 64 ? 7 : 0;
	} while ((byte & 0x80) && !c->bad);
	return c->bad ? 0 : value;
}

int64_t cursor_sleb128(struct cursor *c)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(c);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		else if ((byte & 0x7f) != 0 && (byte & 0x7f) != 0x7f)
			c->bad = true;
		shift += shift < 64 ? 7 : 0;
	} while ((byte & 0x80) && !c->bad);
	if (shift < 64 && (byte & 0x40))
		value |= ~UINT64_C(0) << shift;
	return c->bad ? 0 : (int64_t)value;
}

const char *cursor_string(struct cursor *c)
{
	const char *text = (const char *)c->at;
	const void *nul;

	if (c->bad || c->at == c->end) {
		c->bad = true;
		return NULL;
	}
	nul = memchr(c->at, 0, (size_t)(c->end - c->at));
	if (!nul) {
		c->bad = true;
		return NULL;
	}
	c->at = (const uint8_t *)nul + 1;
	return text;
}

struct cursor cursor_slice(const struct cursor *c, uint64_t offset, uint64_t size)
{
	uint64_t whole = (uint64_t)(c->end - c->start);
	struct cursor slice = cursor_over(NULL, 0);

	if (offset > whole || size > whole - offset) {
		slice.bad = true;
		return slice;
	}
	/* A zero-initialized cursor has NULL pointers. */
	return cursor_over(c->start ? c->start + offset : NULL, (size_t)size);
}
