/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The build information (debug/buildinfo in Go's library) is a blob that starts with 14 bytes of
 * magic, the pointer size and flags. Since 1.18 (flag 2) a varint length and the version's text
 * follow at 32. Before, the word at 16 points to a Go string: a pointer and a length.
 */
#include "symbolizer/indexer/go/go_version.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "symbolizer/indexer/go/go.h"

enum {
	INLINE_STRINGS = 2, /* flags */
	BIG_ENDIAN = 1,
	HEADER_BYTES = 32,
	ALIGNMENT = 16,
	MAX_VERSION_BYTES = 256,
	MAX_SCAN_BYTES = 1 << 20, /* the linker puts the blob at the start of the data */
	MAX_MINOR = 999,
};

static const char magic[14] = "\xff Go buildinf:";

static bool has_magic(struct cursor c)
{
	const void *bytes = cursor_bytes(&c, sizeof(magic));

	return bytes && !memcmp(bytes, magic, sizeof(magic));
}

/* Searches the first writable segments for the blob; for files without section headers. */
static bool search(struct elf_image *image, uint64_t *ret_address)
{
	for (size_t i = 0; i < elf_image_segment_count(image); i++) {
		struct elf_segment s = elf_image_segment(image, i);
		struct cursor c;

		if (s.type != PT_LOAD || !(s.flags & PF_W) || s.address % ALIGNMENT)
			continue;
		c = elf_image_at(image, s.address,
			s.file_size < MAX_SCAN_BYTES ? s.file_size : MAX_SCAN_BYTES);
		for (; cursor_left(&c) >= HEADER_BYTES; cursor_skip(&c, ALIGNMENT)) {
			if (!has_magic(c))
				continue;
			*ret_address = s.address + cursor_offset(&c);
			return true;
		}
	}
	return false;
}

static struct cursor inline_text(const struct elf_image *image, uint64_t blob)
{
	struct cursor c = elf_image_from(image, blob);
	uint64_t length;

	cursor_skip(&c, HEADER_BYTES);
	length = cursor_uleb128(&c);
	return cursor_slice(&c, cursor_offset(&c), c.bad ? UINT64_MAX : length);
}

static struct cursor pointed_text(struct elf_image *image, uint64_t blob)
{
	uint64_t string, text, length;

	if (!elf_image_word(image, blob + 16, &string) || !elf_image_word(image, string, &text) ||
		!elf_image_word(image, string + 8, &length))
		return (struct cursor){ .bad = true };
	return elf_image_at(image, text, length);
}

static struct cursor version_text(struct elf_image *image, uint64_t blob)
{
	struct cursor header = elf_image_at(image, blob, HEADER_BYTES);
	uint8_t flags;

	if (!has_magic(header))
		return (struct cursor){ .bad = true };
	cursor_skip(&header, sizeof(magic));
	if (cursor_u8(&header) != 8)
		return (struct cursor){ .bad = true };
	flags = cursor_u8(&header);
	if (flags & BIG_ENDIAN)
		return (struct cursor){ .bad = true };
	return flags & INLINE_STRINGS ? inline_text(image, blob) : pointed_text(image, blob);
}

/*
 * Parses "go1.21.3", "go1.22rc1", "go1.24.1 X:nocoverageredesign", "devel go1.25-8dce8bd Tue …",
 * and "devel +8dce8bd Tue …" (up to 1.16), which does not name a version.
 */
static struct go_version parse(const char *text)
{
	static const char devel[] = "devel ", go1[] = "go1.";
	struct go_version version = { .minor = GO_VERSION_UNKNOWN, .released = true };
	uint32_t minor = 0;

	if (!strncmp(text, devel, sizeof(devel) - 1)) {
		version.released = false;
		text += sizeof(devel) - 1;
	}
	if (strncmp(text, go1, sizeof(go1) - 1) != 0)
		return version;
	text += sizeof(go1) - 1;
	if (*text < '0' || *text > '9')
		return version;
	for (; *text >= '0' && *text <= '9' && minor <= MAX_MINOR; text++)
		minor = minor * 10 + (uint32_t)(*text - '0');
	if (*text == '-')
		version.released = false;
	if (minor <= MAX_MINOR)
		version.minor = minor;
	return version;
}

/* Copies the version number, without "go" and what follows the number. */
static void copy_number(const char *text, char number[GO_VERSION_TEXT_BYTES])
{
	const char *start = strstr(text, "go1.");
	size_t length = start ? strspn(start + 2, "0123456789.rcbeta") : 0;

	if (length >= GO_VERSION_TEXT_BYTES)
		length = 0;
	if (length)
		memcpy(number, start + 2, length);
	number[length] = 0;
}

int go_version_read(struct elf_image *image, struct go_version *ret_version)
{
	char text[MAX_VERSION_BYTES + 1] = "";
	struct elf_section section;
	struct cursor c;
	uint64_t blob;
	size_t length;

	if (elf_image_find(image, ".go.buildinfo", &section))
		blob = section.address;
	else if (elf_image_section_count(image) > 1 || !search(image, &blob))
		return -ENOENT;
	c = version_text(image, blob);
	length = cursor_left(&c) < MAX_VERSION_BYTES ? cursor_left(&c) : MAX_VERSION_BYTES;
	if (length)
		memcpy(text, cursor_bytes(&c, length), length);
	*ret_version = parse(text);
	copy_number(text, ret_version->text);
	return 0;
}
