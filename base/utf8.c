/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

/* Table 3-7 of the Unicode standard. */
size_t utf8_length(const char *bytes, size_t size)
{
	const uint8_t *text = (const uint8_t *)bytes;
	uint8_t lead = size ? text[0] : 0xff, low = 0x80, high = 0xbf;
	size_t length;

	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		length = 2;
	else if (lead >= 0xe0 && lead <= 0xef)
		length = 3;
	else if (lead >= 0xf0 && lead <= 0xf4)
		length = 4;
	else
		return 0;
	if (length > size)
		return 0;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	if (text[1] < low || text[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	}
	return length;
}

/* C0, DEL, and C1 (U+0080 to U+009F), which terminals obey in UTF-8, too. */
static bool is_control(const char *text, size_t length)
{
	unsigned char c = (unsigned char)*text;

	if (length == 2)
		return c == 0xc2 && (unsigned char)text[1] < 0xa0;
	return length == 1 && (c < 0x20 || c == 0x7f);
}

#define EACH_BYTE UINT64_C(0x0101010101010101)

/* Whether eight bytes are all printable ASCII, as nearly all names are. */
static bool utf8_is_printable(const char *text)
{
	const uint64_t high = 0x80 * EACH_BYTE;
	uint64_t eight;

	memcpy(&eight, text, sizeof(eight));
	/* Without a byte from 0x80 on, no sum carries into the next byte. */
	return !(eight & high) && ((eight + 0x60 * EACH_BYTE) & high) == high &&
	       !((eight + EACH_BYTE) & high);
}

bool utf8_is_clean(const char *text, size_t size)
{
	for (; size >= sizeof(uint64_t) && utf8_is_printable(text); size -= sizeof(uint64_t))
		text += sizeof(uint64_t);
	while (size > 0) {
		size_t length = utf8_length(text, size);

		if (length == 0 || is_control(text, length))
			return false;
		text += length;
		size -= length;
	}
	return true;
}

static void utf8_replace(char *text, size_t size, bool control)
{
	while (size > 0) {
		size_t length = utf8_length(text, size);
		size_t replaced = MAX(length, 1);

		if (length == 0 || (control && is_control(text, length)))
			memset(text, '?', replaced);
		text += replaced;
		size -= replaced;
	}
}

void utf8_repair(char *text, size_t size)
{
	utf8_replace(text, size, false);
}

void utf8_clean(char *text, size_t size)
{
	utf8_replace(text, size, true);
}
