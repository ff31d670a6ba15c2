/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/toolchain.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/runtime_source.h"

enum {
	MAX_COMMENTS = 64,
	MAX_COMMENT_BYTES = 64 << 10, /* of the section */
	MAX_VERSION = 24,
};

/* Patterns of .comment strings and the text before the version; the last one to match wins. */
static const struct maker {
	const char *beginning; /* NULL: any, as in "Debian clang version 14.0.6" */
	const char *before;
	const char *name;
} makers[] = {
	{ "GCC: (", ") ", "GCC" },
	{ NULL, "clang version ", "Clang" },
	{ "rustc version ", "rustc version ", "Rust" },
};

/* Copies the version at the start of TEXT; "" if there is none. */
static void copy_version(const char *text, char version[MAX_VERSION])
{
	size_t length = 0;

	while (isdigit((unsigned char)text[0]) && length + 1 < MAX_VERSION &&
		(isalnum((unsigned char)text[length]) || strchr(".+-_", text[length])) &&
		text[length]) {
		version[length] = text[length];
		length++;
	}
	version[length] = 0;
}

static bool match(const struct maker *m, const char *comment, char text[TOOLCHAIN_BYTES])
{
	const char *before = strstr(comment, m->before);
	char version[MAX_VERSION];

	if (!before || (m->beginning && strncmp(comment, m->beginning, strlen(m->beginning)) != 0))
		return false;
	copy_version(before + strlen(m->before), version);
	snprintf(text, TOOLCHAIN_BYTES, "%s%s%s", m->name, *version ? " " : "", version);
	return true;
}

static void read_comments(struct elf_image *image, char text[TOOLCHAIN_BYTES])
{
	struct cursor all = elf_image_bytes(image, ".comment");
	struct cursor c = cursor_slice(&all, 0, MIN(cursor_left(&all), (size_t)MAX_COMMENT_BYTES));
	size_t best = 0;

	for (int i = 0; i < MAX_COMMENTS && cursor_left(&c); i++) {
		const char *comment = cursor_string(&c);

		for (size_t m = best; comment && m < ARRAY_SIZE(makers); m++) {
			if (match(&makers[m], comment, text))
				best = m;
		}
	}
}

void toolchain_read(struct elf_image *image, char text[TOOLCHAIN_BYTES])
{
	*text = 0;
	if (!runtime_sources_toolchain(image, text))
		read_comments(image, text);
}
