/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections and their bytes. Decompression is done here and not by libelf, because Debian 12's
 * libelf cannot read zstd, and because we limit the memory that a section's header may request.
 */
#include <errno.h>
#include <gelf.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/elf/elf_image_state.h"

enum {
	MAX_SECTIONS = 1 << 17,
	MAX_NAME_BYTES = 256,
	OLD_HEADER_BYTES = 12, /* .zdebug_*: "ZLIB" and the size, big-endian */
};
static const size_t MAX_INFLATED_BYTES = UINT64_C(1) << 30; /* of all sections of a file */
/* In proportion to the file. Debug information shrinks to a fourth, zeros to a thousandth. */
static const size_t INFLATED_BASE_BYTES = 16 << 20;
static const size_t INFLATED_RATIO = 8;

/* An empty cursor with a non-NULL position: adding even 0 to NULL is undefined. */
static struct cursor no_bytes(void)
{
	return cursor_over("", 0);
}

static struct cursor section_names(const struct elf_image *image, size_t number)
{
	Elf_Scn *scn = elf_getscn(image->elf, number);
	struct cursor names;
	GElf_Shdr header;

	if (!scn || !gelf_getshdr(scn, &header) || header.sh_type != SHT_STRTAB)
		return no_bytes();
	names = elf_image_file(image, header.sh_offset, header.sh_size);
	return names.bad ? no_bytes() : names;
}

/* Not by elf_strptr(), which searches the whole rest of NAMES for an end. */
static const char *section_name(const struct cursor *names, uint64_t offset)
{
	struct cursor c = *names;
	const char *name;

	cursor_seek(&c, offset);
	if (cursor_left(&c) > MAX_NAME_BYTES)
		c.end = c.at + MAX_NAME_BYTES;
	name = cursor_string(&c);
	return name ? name : "";
}

static void elf_sections_read_section(
	struct elf_image *image, Elf_Scn *scn, const struct cursor *names, size_t number)
{
	struct elf_section *section = &image->sections[number].header;
	GElf_Shdr header;

	section->name = "";
	section->number = (uint32_t)number;
	if (!scn || !gelf_getshdr(scn, &header))
		return;
	*section = (struct elf_section){
		.name = section_name(names, header.sh_name),
		.type = header.sh_type,
		.link = header.sh_link,
		.info = header.sh_info,
		.flags = header.sh_flags,
		.address = header.sh_addr,
		.file_off = header.sh_offset,
		.size = header.sh_size,
		.entry_size = header.sh_entsize,
		.align = header.sh_addralign,
		.number = (uint32_t)number,
	};
}

int elf_sections_read(struct elf_image *image)
{
	size_t count, names_number;
	struct cursor names;

	/* A file without usable section headers still has its segments. */
	if (elf_getshdrnum(image->elf, &count) || elf_getshdrstrndx(image->elf, &names_number) ||
		!count)
		return 0;
	if (count > MAX_SECTIONS)
		return -E2BIG;
	image->sections = calloc(count, sizeof(*image->sections));
	if (!image->sections)
		return -ENOMEM;
	image->section_count = count;
	names = section_names(image, names_number);
	for (size_t i = 0; i < count; i++)
		elf_sections_read_section(image, elf_getscn(image->elf, i), &names, i);
	return 0;
}

void elf_sections_free(struct elf_image *image)
{
	for (size_t i = 0; i < image->section_count; i++) {
		free(image->sections[i].inflated);
		if (image->sections[i].scratched)
			munmap(image->sections[i].scratched, image->sections[i].scratched_bytes);
	}
	free(image->sections);
}

size_t elf_image_section_count(const struct elf_image *image)
{
	return image->section_count;
}

struct elf_section elf_image_section(const struct elf_image *image, size_t number)
{
	if (number >= image->section_count)
		return (struct elf_section){ .name = "" };
	return image->sections[number].header;
}

static bool elf_sections_find_section(
	const struct elf_image *image, const char *name, size_t *ret_number)
{
	bool found = false;

	for (size_t i = 1; i < image->section_count; i++) {
		if (strcmp(image->sections[i].header.name, name))
			continue;
		*ret_number = i;
		found = true;
		/* Of an object's groups, which repeat a type or a macro, the whole is meant. */
		if (!(image->sections[i].header.flags & SHF_GROUP))
			break;
	}
	return found;
}

bool elf_image_find(
	const struct elf_image *image, const char *name, struct elf_section *ret_section)
{
	size_t number;

	if (!elf_sections_find_section(image, name, &number))
		return false;
	*ret_section = image->sections[number].header;
	return true;
}

static bool inflate_zlib(const struct cursor *in, void *out, size_t size)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	enum libdeflate_result result;

	if (!d)
		return false;
	result = libdeflate_zlib_decompress(d, in->at, cursor_left(in), out, size, NULL);
	libdeflate_free_decompressor(d);
	return result == LIBDEFLATE_SUCCESS;
}

static size_t inflated_limit(const struct elf_image *image)
{
	return MIN(MAX_INFLATED_BYTES,
		INFLATED_BASE_BYTES + MIN(image->map_size, MAX_INFLATED_BYTES) * INFLATED_RATIO);
}

bool elf_image_may_hold(struct elf_image *image, uint64_t size)
{
	if (size > inflated_limit(image) - image->inflated_bytes)
		return false;
	image->inflated_bytes += size;
	return true;
}

/* Errors are those of scratch_inflate(); -ENOSPC: the section is not for the scratch file. */
static int inflate_to_scratch(struct elf_image *image, struct image_section *section,
	struct cursor in, uint32_t method, uint64_t size)
{
	int err;

	/* Relocated bytes are a copy, in memory. */
	if (image->type == ET_REL || !scratch_takes(image->scratch, size))
		return -ENOSPC;
	err = scratch_inflate(image->scratch, image, in, method, size, &section->scratched);
	if (!err)
		section->scratched_bytes = size;
	return err;
}

static struct cursor inflate(struct elf_image *image, struct image_section *section,
	struct cursor in, uint32_t method, uint64_t size)
{
	autofree void *out = NULL;
	bool ok = false;
	int err;

	/* Counts also if it fails: it was work. */
	if (in.bad || !size || !elf_image_may_hold(image, size))
		return no_bytes();
	err = inflate_to_scratch(image, section, in, method, size);
	if (!err)
		return cursor_over(section->scratched, size);
	if (err == -EBADMSG)
		return no_bytes();
	out = malloc(size);
	if (!out)
		return no_bytes();
	if (method == COMPRESSED_ZLIB)
		ok = inflate_zlib(&in, out, size);
	else if (method == COMPRESSED_ZSTD)
		ok = ZSTD_decompress(out, size, in.at, cursor_left(&in)) == size;
	elf_image_forget(image, in.start, (size_t)(in.end - in.start));
	if (!ok)
		return no_bytes();
	section->inflated = take(out);
	return cursor_over(section->inflated, size);
}

static struct cursor load_compressed(
	struct elf_image *image, struct image_section *section, struct cursor raw)
{
	uint32_t method = cursor_u32(&raw); /* Elf64_Chdr */
	uint64_t size;

	cursor_skip(&raw, 4);
	size = cursor_u64(&raw);
	cursor_skip(&raw, 8);
	return inflate(image, section, raw, method, size);
}

static struct cursor load_old_compressed(
	struct elf_image *image, struct image_section *section, struct cursor raw)
{
	uint64_t size;

	cursor_skip(&raw, 4);
	size = __builtin_bswap64(cursor_u64(&raw));
	return inflate(image, section, raw, COMPRESSED_ZLIB, size);
}

static struct cursor load_section(struct elf_image *image, struct image_section *section)
{
	const struct elf_section *header = &section->header;
	struct cursor raw;

	if (header->type == SHT_NOBITS || header->type == SHT_NULL)
		return no_bytes();
	raw = elf_image_file(image, header->file_off, header->size);
	if (raw.bad)
		return no_bytes();
	if (header->flags & SHF_COMPRESSED)
		return load_compressed(image, section, raw);
	if (!strncmp(header->name, ".zdebug_", 8) && header->size >= OLD_HEADER_BYTES &&
		!memcmp(raw.at, "ZLIB", 4))
		return load_old_compressed(image, section, raw);
	return raw;
}

struct cursor elf_image_section_bytes(struct elf_image *image, size_t number)
{
	struct image_section *section;

	if (number >= image->section_count)
		return no_bytes();
	section = &image->sections[number];
	if (!section->loaded) {
		section->bytes =
			elf_relocatable_bytes(image, section, load_section(image, section));
		section->loaded = true;
	}
	return section->bytes;
}

struct cursor elf_image_bytes(struct elf_image *image, const char *name)
{
	char old_name[MAX_NAME_BYTES];
	size_t number;

	if (elf_sections_find_section(image, name, &number))
		return elf_image_section_bytes(image, number);
	if (strncmp(name, ".debug_", 7) || strlen(name) > sizeof(old_name) - 2)
		return no_bytes();
	stpcpy(stpcpy(old_name, ".z"), name + 1);
	if (!elf_sections_find_section(image, old_name, &number))
		return no_bytes();
	return elf_image_section_bytes(image, number);
}
