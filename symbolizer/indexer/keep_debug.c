/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers determine the whole plan before a byte is written: which sections stay, where they
 * go, and the total size. A false header costs that section; one that makes the file too long ends
 * the work at once.
 */
#include "symbolizer/indexer/keep_debug.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/io.h"

enum {
	MAX_SECTIONS = SHN_LORESERVE,
	MAX_SEGMENTS = 4096,
	MAX_NAMES_BYTES = 4 << 20, /* of .shstrtab */
	MAX_ALIGN = 4096,
	BLOCK_BYTES = 64 << 10,
};

struct plan {
	int in, out;
	uint64_t in_size;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	Elf64_Shdr *sections; /* as in the input */
	uint64_t *places; /* file offsets of sections in the output; 0 = without contents */
	char *names;
	uint64_t names_size;
	uint64_t headers_off; /* of the section headers */
};

/* ---- reading -------------------------------------------------------------------------------- */

static int keep_debug_read_all(const struct plan *p, uint64_t off, void *bytes, size_t size)
{
	ssize_t got;

	if (off > p->in_size || size > p->in_size - off)
		return -EBADMSG;
	got = io_read_at(p->in, off, bytes, size);
	if (got < 0)
		return (int)got;
	return (size_t)got == size ? 0 : -EBADMSG;
}

static int keep_debug_read_table(const struct plan *p, uint64_t off, size_t size, void **ret_table)
{
	autofree void *table = malloc(size ? size : 1);
	int err = table ? keep_debug_read_all(p, off, table, size) : -ENOMEM;

	if (!err)
		*ret_table = take(table);
	return err;
}

static int keep_debug_read_header(struct plan *p)
{
	const Elf64_Ehdr *h = &p->header;
	int err = keep_debug_read_all(p, 0, &p->header, sizeof(p->header));

	if (err || memcmp(h->e_ident, ELFMAG, SELFMAG))
		return err ? err : -EBADMSG;
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
		(h->e_type != ET_EXEC && h->e_type != ET_DYN))
		return -EOPNOTSUPP;
	/* Larger numbers would be in section 0 (gABI); no linked file has so many. */
	if (!h->e_shoff || (h->e_shnum && !h->e_shstrndx))
		return -ENODATA;
	if (h->e_phnum > MAX_SEGMENTS || h->e_shnum >= MAX_SECTIONS || h->e_shstrndx >= h->e_shnum)
		return -E2BIG;
	if (h->e_shentsize != sizeof(Elf64_Shdr) ||
		(h->e_phnum && h->e_phentsize != sizeof(Elf64_Phdr)))
		return -EBADMSG;
	return 0;
}

/* Tables are read as structs: the file has this machine's byte order. */
static int read_headers(struct plan *p)
{
	size_t segments = p->header.e_phnum * sizeof(Elf64_Phdr);
	size_t sections = p->header.e_shnum * sizeof(Elf64_Shdr);
	const Elf64_Shdr *names;
	int err;

	err = keep_debug_read_table(p, p->header.e_phoff, segments, (void **)&p->segments);
	if (!err)
		err = keep_debug_read_table(p, p->header.e_shoff, sections, (void **)&p->sections);
	if (err)
		return err;
	names = &p->sections[p->header.e_shstrndx];
	if (names->sh_type != SHT_STRTAB)
		return -EBADMSG;
	if (names->sh_size > MAX_NAMES_BYTES)
		return -E2BIG;
	p->names_size = names->sh_size;
	err = keep_debug_read_table(p, names->sh_offset, names->sh_size, (void **)&p->names);
	if (err)
		return err;
	p->places = calloc(p->header.e_shnum, sizeof(*p->places));
	return p->places ? 0 : -ENOMEM;
}

/* ---- what stays ----------------------------------------------------------------------------- */

static bool keep_debug_begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static const char *keep_debug_name_of(const struct plan *p, const Elf64_Shdr *section)
{
	struct cursor names = cursor_over(p->names, p->names_size);
	const char *name;

	cursor_seek(&names, section->sh_name);
	name = cursor_string(&names);
	return name ? name : "";
}

/* Returns true for sections that can name code on their own. */
static bool is_source(const struct plan *p, const Elf64_Shdr *section)
{
	const char *name = keep_debug_name_of(p, section);

	switch (section->sh_type) {
	case SHT_SYMTAB:
	case SHT_DYNSYM:
		return true;
	case SHT_PROGBITS:
		return keep_debug_begins(name, ".debug_info") ||
		       keep_debug_begins(name, ".zdebug_info") || !strcmp(name, ".gopclntab") ||
		       !strcmp(name, ".data.rel.ro.gopclntab") || !strcmp(name, ".gnu_debugdata");
	default:
		return false;
	}
}

static bool keep_debug_stays(const struct plan *p, const Elf64_Shdr *section)
{
	static const char *const others[] = { ".gosymtab", ".data.rel.ro.gosymtab",
		".gnu_debuglink", ".gnu_debugaltlink" };
	const char *name = keep_debug_name_of(p, section);

	switch (section->sh_type) {
	case SHT_STRTAB:
	case SHT_SYMTAB_SHNDX:
	case SHT_NOTE:
		return true;
	case SHT_PROGBITS:
		break;
	default:
		return is_source(p, section);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (!strcmp(name, others[i]))
			return true;
	}
	return is_source(p, section) || keep_debug_begins(name, ".debug_") ||
	       keep_debug_begins(name, ".zdebug_");
}

/* ---- where it goes -------------------------------------------------------------------------- */

static uint64_t aligned(uint64_t off, uint64_t align)
{
	if (!align || align & (align - 1))
		return off;
	align = MIN(align, (uint64_t)MAX_ALIGN);
	return (off + align - 1) & ~(align - 1);
}

static bool is_inside(const struct plan *p, const Elf64_Shdr *section)
{
	return section->sh_offset <= p->in_size &&
	       section->sh_size <= p->in_size - section->sh_offset;
}

static int place_sections(struct plan *p)
{
	uint64_t off = sizeof(Elf64_Ehdr) + p->header.e_phnum * sizeof(Elf64_Phdr);
	bool any = false;

	for (size_t i = 1; i < p->header.e_shnum; i++) {
		const Elf64_Shdr *section = &p->sections[i];

		if (!keep_debug_stays(p, section) || !is_inside(p, section))
			continue;
		off = aligned(off, section->sh_addralign);
		p->places[i] = off;
		if (section->sh_size > KEEP_DEBUG_MAX_BYTES - MIN(off, KEEP_DEBUG_MAX_BYTES))
			return -E2BIG;
		off += section->sh_size;
		any |= section->sh_size && is_source(p, section);
	}
	p->headers_off = aligned(off, sizeof(uint64_t));
	if (p->headers_off + p->header.e_shnum * sizeof(Elf64_Shdr) > KEEP_DEBUG_MAX_BYTES)
		return -E2BIG;
	return any ? 0 : -ENODATA;
}

/* ---- the new headers ------------------------------------------------------------------------ */

/* Moves a PT_NOTE segment, if all its sections are kept at the same distances from each other. */
static bool move_notes(const struct plan *p, Elf64_Phdr *segment)
{
	uint64_t end = segment->p_offset + segment->p_filesz, base = 0, covered = 0;

	for (size_t i = 1; i < p->header.e_shnum; i++) {
		const Elf64_Shdr *s = &p->sections[i];

		if (s->sh_type != SHT_NOTE || s->sh_offset < segment->p_offset ||
			s->sh_offset >= end)
			continue;
		if (!p->places[i] || p->places[i] < s->sh_offset - segment->p_offset)
			return false;
		if (!base)
			base = p->places[i] - (s->sh_offset - segment->p_offset);
		if (p->places[i] != base + (s->sh_offset - segment->p_offset))
			return false;
		covered = MAX(covered, s->sh_offset + s->sh_size - segment->p_offset);
	}
	if (!base || covered < segment->p_filesz)
		return false;
	segment->p_offset = base;
	return true;
}

static void change_headers(struct plan *p)
{
	uint64_t off = sizeof(Elf64_Ehdr);

	for (size_t i = 0; i < p->header.e_phnum; i++) {
		if (p->segments[i].p_type != PT_NOTE || !move_notes(p, &p->segments[i]))
			p->segments[i].p_filesz = 0;
	}
	for (size_t i = 1; i < p->header.e_shnum; i++) {
		Elf64_Shdr *section = &p->sections[i];

		if (p->places[i]) {
			off = p->places[i];
		} else if (section->sh_type != SHT_NULL) {
			section->sh_type = SHT_NOBITS;
			section->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
		}
		section->sh_offset = off;
		off += p->places[i] ? section->sh_size : 0;
	}
	p->header.e_phoff = p->header.e_phnum ? sizeof(Elf64_Ehdr) : 0;
	p->header.e_shoff = p->headers_off;
	p->header.e_ehsize = sizeof(Elf64_Ehdr);
}

/* ---- writing -------------------------------------------------------------------------------- */

static int copy(const struct plan *p, uint64_t from, uint64_t to, uint64_t size)
{
	autofree uint8_t *block = malloc(BLOCK_BYTES);
	int err = block ? 0 : -ENOMEM;

	while (!err && size) {
		size_t some = MIN(size, (uint64_t)BLOCK_BYTES);

		err = keep_debug_read_all(p, from, block, some);
		if (!err)
			err = io_write_at(p->out, to, block, some);
		from += some;
		to += some;
		size -= some;
	}
	return err;
}

static int keep_debug_write_file(struct plan *p)
{
	int err = 0;

	for (size_t i = 1; !err && i < p->header.e_shnum; i++) {
		const Elf64_Shdr *section = &p->sections[i];

		if (p->places[i])
			err = copy(p, section->sh_offset, p->places[i], section->sh_size);
	}
	if (err)
		return err;
	change_headers(p);
	err = io_write_at(p->out, 0, &p->header, sizeof(p->header));
	if (!err)
		err = io_write_at(p->out, sizeof(p->header), p->segments,
			p->header.e_phnum * sizeof(*p->segments));
	return err ? err
		   : io_write_at(p->out, p->headers_off, p->sections,
			     p->header.e_shnum * sizeof(*p->sections));
}

static int keep_debug_execute(struct plan *p)
{
	struct stat st;
	int err = io_fstat(p->in, &st);

	if (err)
		return err;
	p->in_size = (uint64_t)st.st_size;
	err = keep_debug_read_header(p);
	if (!err)
		err = read_headers(p);
	if (!err)
		err = place_sections(p);
	return err ? err : keep_debug_write_file(p);
}

int keep_debug_run(int elf_fd, int output_fd, struct sandbox_result *ret_result)
{
	struct plan p = { .in = elf_fd, .out = output_fd };
	int err = keep_debug_execute(&p);

	free(p.segments);
	free(p.sections);
	free(p.places);
	free(p.names);
	*ret_result = (struct sandbox_result){ .error = err };
	return err;
}
