/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/elf/debug_names.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/build_id_note.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/io.h"

enum {
	MAX_SECTIONS = 1024, /* a program has about forty */
	MAX_NAMES_BYTES = 1 << 20, /* of the table of section names */
	MAX_NOTE_BYTES = 4096,
	MAX_LINK_BYTES = DEBUG_NAME_BYTES + 64,
	CRC_BYTES = 4,
};

struct section {
	uint32_t name, type;
	uint64_t off, size;
};

struct reader {
	int fd;
	uint64_t headers_off;
	uint16_t count, names_number;
	int error; /* transient error of a section's read; 0 = none */
	struct debug_names *names;
};

/* Reads exactly SIZE bytes at OFF; -EBADMSG if the file is shorter. */
static int read_at(int fd, uint64_t off, void *bytes, size_t size)
{
	ssize_t got = io_read_at(fd, off, bytes, size);

	if (got < 0)
		return (int)got;
	return (size_t)got == size ? 0 : -EBADMSG;
}

static int debug_names_read_header(struct reader *r)
{
	uint8_t bytes[sizeof(Elf64_Ehdr)];
	struct cursor c = cursor_over(bytes, sizeof(bytes));
	const uint8_t *ident;
	int err = read_at(r->fd, 0, bytes, sizeof(bytes));

	if (err)
		return err;
	ident = cursor_bytes(&c, EI_NIDENT);
	if (memcmp(ident, ELFMAG, SELFMAG) || ident[EI_DATA] != ELFDATA2LSB ||
		ident[EI_CLASS] != ELFCLASS64)
		return -EBADMSG;
	cursor_skip(&c, 2 + 2 + 4 + 8 + 8); /* e_type, e_machine, e_version, e_entry, e_phoff */
	r->headers_off = cursor_u64(&c);
	cursor_skip(&c, 4 + 2 + 2 + 2); /* e_flags, e_ehsize, e_phentsize, e_phnum */
	if (cursor_u16(&c) != sizeof(Elf64_Shdr))
		return -EBADMSG;
	r->count = cursor_u16(&c);
	r->names_number = cursor_u16(&c);
	return r->count && r->count <= MAX_SECTIONS && r->names_number < r->count ? 0 : -EBADMSG;
}

static struct section debug_names_read_section(struct cursor *c)
{
	struct section s = { .name = cursor_u32(c), .type = cursor_u32(c) };

	cursor_skip(c, 8 + 8); /* sh_flags, sh_addr */
	s.off = cursor_u64(c);
	s.size = cursor_u64(c);
	cursor_skip(c, 4 + 4 + 8 + 8); /* sh_link, sh_info, sh_addralign, sh_entsize */
	return s;
}

static bool debug_names_copy_name(struct cursor *c, char name[DEBUG_NAME_BYTES])
{
	const char *text = cursor_string(c);

	if (!text || !*text || strlen(text) >= DEBUG_NAME_BYTES)
		return false;
	memcpy(name, text, strlen(text) + 1);
	return true;
}

/* A file name, padding to four bytes, CRC-32 of the file (gdb's manual, "Separate Debug Files"). */
static void use_link(struct reader *r, struct cursor c)
{
	struct debug_names *names = r->names;

	if (!debug_names_copy_name(&c, names->link))
		return;
	cursor_skip(&c, -cursor_offset(&c) & 3);
	names->link_crc = cursor_u32(&c);
	/* Only a name without a path is valid. */
	if (c.bad || strchr(names->link, '/'))
		names->link[0] = 0;
}

static void take_alternate_id(struct reader *r, struct cursor *c, uint64_t size)
{
	struct debug_names *names = r->names;

	if (c->bad || !size || size > MIN(cursor_left(c), (uint64_t)BUILD_ID_MAX_BYTES)) {
		names->alternate[0] = 0;
		return;
	}
	names->alternate_id.size = (uint8_t)size;
	memcpy(names->alternate_id.bytes, cursor_bytes(c, size), size);
}

/* .gnu_debugaltlink: a path, then the build ID of the file. */
static void use_alternate(struct reader *r, struct cursor c)
{
	if (debug_names_copy_name(&c, r->names->alternate))
		take_alternate_id(r, &c, cursor_left(&c));
}

/* .debug_sup (DWARF 5, 7.3.6): version, which side this is, the path, length and ID. */
static void use_supplementary(struct reader *r, struct cursor c)
{
	cursor_skip(&c, 2);
	if (cursor_u8(&c) == 0 && debug_names_copy_name(&c, r->names->alternate))
		take_alternate_id(r, &c, cursor_uleb128(&c));
}

static void use_note(struct reader *r, struct cursor c)
{
	if (!r->names->build_id.size)
		(void)build_id_from_notes(c.at, cursor_left(&c), &r->names->build_id);
}

/* Reads a small section and passes it to USE; an incomplete one is skipped. */
static void use_bytes(struct reader *r, const struct section *s, size_t max,
	void (*use)(struct reader *r, struct cursor c))
{
	uint8_t bytes[MAX_LINK_BYTES];
	int err;

	if (s->size > MIN(max, sizeof(bytes)))
		return;
	err = read_at(r->fd, s->off, bytes, s->size);
	if (!err)
		use(r, cursor_over(bytes, s->size));
	else if (err != -EBADMSG)
		r->error = err;
}

static void use_section(struct reader *r, const struct section *s, const char *name)
{
	if (s->type == SHT_NOBITS)
		return;
	if (s->type == SHT_NOTE)
		use_bytes(r, s, MAX_NOTE_BYTES, use_note);
	else if (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info"))
		r->names->has_dwarf = 1;
	else if (!strcmp(name, ".gnu_debuglink"))
		use_bytes(r, s, MAX_LINK_BYTES, use_link);
	else if (!strcmp(name, ".gnu_debugaltlink"))
		use_bytes(r, s, MAX_LINK_BYTES, use_alternate);
	else if (!strcmp(name, ".debug_sup"))
		use_bytes(r, s, MAX_LINK_BYTES, use_supplementary);
}

static int use_sections(struct reader *r, struct cursor headers, struct cursor names)
{
	for (unsigned int i = 0; i < r->count; i++) {
		struct section s = debug_names_read_section(&headers);
		struct cursor c = names;
		const char *name;

		cursor_seek(&c, s.name);
		name = cursor_string(&c);
		if (name)
			use_section(r, &s, name);
	}
	if (r->error)
		return r->error;
	return headers.bad ? -EBADMSG : 0;
}

static int read_sections(struct reader *r)
{
	size_t size = r->count * sizeof(Elf64_Shdr);
	autofree uint8_t *headers = malloc(size), *names = NULL;
	struct cursor c;
	struct section s;
	int err;

	if (!headers)
		return -ENOMEM;
	err = read_at(r->fd, r->headers_off, headers, size);
	if (err)
		return err;
	c = cursor_over(headers, size);
	cursor_skip(&c, r->names_number * sizeof(Elf64_Shdr));
	s = debug_names_read_section(&c);
	if (s.type == SHT_NOBITS || !s.size || s.size > MAX_NAMES_BYTES)
		return -EBADMSG;
	names = malloc(s.size);
	if (!names)
		return -ENOMEM;
	err = read_at(r->fd, s.off, names, s.size);
	if (err)
		return err;
	return use_sections(r, cursor_over(headers, size), cursor_over(names, s.size));
}

int debug_names_read(int elf_fd, struct debug_names *ret_names)
{
	autofree struct debug_names *names = calloc(1, sizeof(*names));
	struct reader r = { .fd = elf_fd, .names = names };
	int err;

	if (!names)
		return -ENOMEM;
	err = debug_names_read_header(&r);
	if (!err)
		err = read_sections(&r);
	if (!err)
		*ret_names = *names;
	return err;
}
