/* SPDX-License-Identifier: Apache-2.0 */
/* A few bounded reads (ELF gABI, "Note Section"); the remainder of the file is not read. */
#include "symbolizer/indexer/elf/build_id.h"

#include <elf.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/io.h"

enum {
	MAX_PROGRAM_HEADERS = 256,
	MAX_NOTE_SEGMENTS = 16,
	MAX_NOTE_BYTES = 16 * 1024, /* of a segment; the build ID is one of the first notes */
	MAX_NOTES = 64,
};

/* The fields that we need, for both ELF classes. */
struct elf_layout {
	bool is_64;
	uint64_t headers_off; /* of the program headers */
	uint16_t header_bytes;
	uint16_t header_count;
};

struct note_segment {
	uint64_t off, size, align;
};

static uint64_t read_word(struct cursor *c, const struct elf_layout *elf)
{
	return elf->is_64 ? cursor_u64(c) : cursor_u32(c);
}

static int read_layout(int fd, struct elf_layout *ret_elf)
{
	uint8_t bytes[sizeof(Elf64_Ehdr)];
	ssize_t got = io_read_at(fd, 0, bytes, sizeof(bytes));
	struct elf_layout elf;
	const uint8_t *ident;
	struct cursor c;

	if (got < 0)
		return (int)got;
	c = cursor_over(bytes, (size_t)got);
	ident = cursor_bytes(&c, EI_NIDENT);
	if (!ident || memcmp(ident, ELFMAG, SELFMAG))
		return -EBADMSG;
	if (ident[EI_DATA] != ELFDATA2LSB ||
		(ident[EI_CLASS] != ELFCLASS64 && ident[EI_CLASS] != ELFCLASS32))
		return -EOPNOTSUPP;
	elf.is_64 = ident[EI_CLASS] == ELFCLASS64;
	cursor_skip(&c, 2 + 2 + 4); /* e_type, e_machine, e_version */
	read_word(&c, &elf); /* e_entry */
	elf.headers_off = read_word(&c, &elf);
	read_word(&c, &elf); /* e_shoff */
	cursor_skip(&c, 4 + 2); /* e_flags, e_ehsize */
	elf.header_bytes = cursor_u16(&c);
	elf.header_count = cursor_u16(&c);
	if (c.bad)
		return -EBADMSG;
	*ret_elf = elf;
	return 0;
}

/* Reads the program header at C; true if it is one of notes. */
static bool read_note_segment(
	struct cursor *c, const struct elf_layout *elf, struct note_segment *ret_segment)
{
	uint32_t type = cursor_u32(c);

	if (elf->is_64)
		cursor_skip(c, 4); /* p_flags */
	ret_segment->off = read_word(c, elf);
	read_word(c, elf); /* p_vaddr */
	read_word(c, elf); /* p_paddr */
	ret_segment->size = read_word(c, elf);
	read_word(c, elf); /* p_memsz */
	if (!elf->is_64)
		cursor_skip(c, 4); /* p_flags */
	ret_segment->align = read_word(c, elf);
	return !c->bad && type == PT_NOTE;
}

/* Reads a part of a note and its padding to ALIGN, which the last part may lack. */
static const uint8_t *read_padded(struct cursor *c, uint64_t size, uint64_t align)
{
	const uint8_t *bytes = cursor_bytes(c, size);
	uint64_t padding = -cursor_offset(c) & (align - 1);

	if (bytes)
		cursor_skip(c, MIN(padding, cursor_left(c)));
	return bytes;
}

static int find_build_id(struct cursor *c, uint64_t align, struct build_id *ret_id)
{
	/* Notes are padded to 4 bytes, or to 8 in segments that are aligned to 8. */
	align = align == 8 ? 8 : 4;
	for (int i = 0; i < MAX_NOTES && cursor_left(c) > 0; i++) {
		uint32_t name_size = cursor_u32(c);
		uint32_t content_size = cursor_u32(c);
		uint32_t type = cursor_u32(c);
		const uint8_t *name = read_padded(c, name_size, align);
		const uint8_t *content = read_padded(c, content_size, align);

		if (!name || !content)
			break;
		if (type != NT_GNU_BUILD_ID || name_size != sizeof(ELF_NOTE_GNU) ||
			memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			continue;
		if (content_size == 0 || content_size > BUILD_ID_MAX_BYTES)
			return -EOPNOTSUPP;
		*ret_id = (struct build_id){ .size = (uint8_t)content_size };
		memcpy(ret_id->bytes, content, content_size);
		return 0;
	}
	return -ENOENT;
}

static int read_segment(int fd, const struct note_segment *segment, struct build_id *ret_id)
{
	uint8_t bytes[MAX_NOTE_BYTES];
	ssize_t got = io_read_at(fd, segment->off, bytes, MIN(segment->size, sizeof(bytes)));
	struct cursor c;

	if (got < 0)
		return (int)got;
	c = cursor_over(bytes, (size_t)got);
	return find_build_id(&c, segment->align, ret_id);
}

int build_id_read(int fd, struct build_id *ret_id)
{
	uint8_t bytes[MAX_PROGRAM_HEADERS * sizeof(Elf64_Phdr)];
	unsigned int segments = 0;
	struct elf_layout elf = { 0 };
	struct cursor c;
	ssize_t got;
	int err;

	err = read_layout(fd, &elf);
	if (err)
		return err;
	if (elf.header_bytes != (elf.is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return -EBADMSG;
	if (elf.header_count > MAX_PROGRAM_HEADERS)
		return -E2BIG;
	got = io_read_at(fd, elf.headers_off, bytes, (size_t)elf.header_count * elf.header_bytes);
	if (got < 0)
		return (int)got;
	c = cursor_over(bytes, (size_t)got);
	for (unsigned int i = 0; i < elf.header_count && segments < MAX_NOTE_SEGMENTS; i++) {
		struct note_segment segment;

		if (!read_note_segment(&c, &elf, &segment))
			continue;
		segments++;
		err = read_segment(fd, &segment, ret_id);
		if (err != -ENOENT)
			return err;
	}
	return c.bad ? -EBADMSG : -ENOENT;
}
