/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The fields of a message of Protocol Buffers, which may be anybody's, one after the other. */
#include "base/cursor.h"

enum {
	WIRE_NUMBER = 0,
	WIRE_64_BITS = 1,
	WIRE_BYTES = 2,
	WIRE_32_BITS = 5,
};

struct wire_field {
	uint64_t number, wire;
	uint64_t value; /* WIRE_NUMBER */
	struct cursor bytes; /* WIRE_BYTES */
};

static inline uint64_t wire_number(struct cursor *c)
{
	const uint8_t *at = c->at;
	const size_t left = (size_t)(c->end - at);

	if (left >= 1 && at[0] < 0x80) {
		c->at += 1;
		return at[0];
	}
	if (left >= 2 && at[1] < 0x80) {
		c->at += 2;
		return (at[0] & 0x7fU) | (uint64_t)at[1] << 7;
	}
	if (left >= 3 && at[2] < 0x80) {
		c->at += 3;
		return (at[0] & 0x7fU) | (at[1] & 0x7fU) << 7 | (uint64_t)at[2] << 14;
	}
	return cursor_uleb128(c);
}

/* False at the end and if the rest is damaged, which C says. */
static inline bool wire_next(struct cursor *c, struct wire_field *ret_field)
{
	uint64_t tag, size;

	if (c->at == c->end)
		return false;
	tag = wire_number(c);
	ret_field->number = tag >> 3;
	ret_field->wire = tag & 7;
	ret_field->value = 0;
	switch (tag & 7) {
	case WIRE_NUMBER:
		ret_field->value = wire_number(c);
		break;
	case WIRE_BYTES:
		size = wire_number(c);
		ret_field->bytes = cursor_over(c->at, 0);
		if (cursor_skip(c, size))
			ret_field->bytes.end += size;
		break;
	case WIRE_64_BITS:
		cursor_skip(c, sizeof(uint64_t));
		break;
	case WIRE_32_BITS:
		cursor_skip(c, sizeof(uint32_t));
		break;
	default:
		c->bad = true;
	}
	return !c->bad;
}
