/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

void base64_append(struct buffer *b, const void *bytes, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *from = bytes;
	char *room = size ? buffer_room(b, (size + 2) / 3 * 4) : NULL;

	if (!room)
		return;
	for (size_t i = 0; i < size; i += 3) {
		size_t left = size - i;
		uint32_t three = (uint32_t)from[i] << 16 |
				 (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
				 (left > 2 ? (uint32_t)from[i + 2] : 0);

		*room++ = digits[three >> 18];
		*room++ = digits[three >> 12 & 63];
		*room++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*room++ = left > 2 ? digits[three & 63] : '=';
	}
	b->size += (size + 2) / 3 * 4;
}
