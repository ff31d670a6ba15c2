/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/top/text.h"

#include <stdbool.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/cleanup.h"

/* Combining marks allowed on one character; more would only draw over other lines. */
enum { MARKS_PER_CHARACTER = 4 };

/* Zero-width characters that change how others are shown (Unicode's Cf, line separators). */
static bool is_steering(wchar_t c)
{
	static const struct {
		wchar_t first, last;
	} ranges[] = { { 0xad, 0xad }, { 0x600, 0x605 }, { 0x61c, 0x61c }, { 0x180e, 0x180e },
		{ 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfe00, 0xfe0f },
		{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff } };

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	}
	return false;
}

struct character {
	size_t size; /* its length in bytes */
	size_t columns;
	bool shown; /* false = shown as `?` */
};

static struct character character_at(const char *text, size_t size)
{
	struct character c = { .size = 1, .columns = 1 };
	mbstate_t state = { 0 };
	wchar_t wide;
	size_t length = mbrtowc(&wide, text, size, &state);
	int columns;

	if (length == 0 || length > size)
		return c;
	c.size = length;
	columns = wcwidth(wide);
	if (columns < 0 || !iswprint((wint_t)wide) || is_steering(wide))
		return c;
	c.columns = (size_t)columns;
	c.shown = true;
	return c;
}

size_t text_put(struct buffer *out, const char *text, size_t columns)
{
	size_t size = strlen(text), used = 0, marks = 0;

	while (size > 0) {
		struct character c = character_at(text, size);

		if (used + c.columns > columns)
			break;
		marks = c.columns ? 0 : marks + 1;
		if (!c.shown)
			buffer_string(out, "?");
		else if (marks <= MARKS_PER_CHARACTER)
			buffer_append(out, text, c.size);
		used += c.columns;
		text += c.size;
		size -= c.size;
	}
	return used;
}

void text_put_padded(struct buffer *out, const char *text, size_t columns)
{
	size_t used = text_put(out, text, columns);

	if (used < columns)
		buffer_printf(out, "%*s", (int)(columns - used), "");
}
