/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relocatable files (ET_REL): objects and kernel modules. Their sections have no addresses, and
 * what refers to an address (.debug_*, .eh_frame) is completed by relocations. Each section gets an
 * address as in a loaded kernel module (layout_sections() in kernel/module/main.c): first the code,
 * in the order of the file and aligned, then .init*, then data. A file with only .text thus has it
 * at 0. So has an arm64 module, whose trampolines come first in some files: they get their size and
 * place from the kernel that loads it, and here they are behind the code. Linked files that kept
 * their relocations (vmlinux) are complete without them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/elf/elf_image_state.h"

enum {
	MAX_ALIGN = 1 << 21,
	RELA_BYTES = sizeof(Elf64_Rela),
};
static const uint64_t MAX_ADDRESS = UINT64_C(1) << 31;

/* ---- addresses ------------------------------------------------------------------------------ */

enum layout_part { LAYOUT_CODE, LAYOUT_INIT, LAYOUT_DATA, LAYOUT_PARTS, LAYOUT_NOWHERE };

/* A byte that stands for an arm64 module's trampolines (scripts/module.lds). */
static bool is_placeholder(const struct elf_section *section)
{
	return section->size == 1 &&
	       (!strcmp(section->name, ".plt") || !strcmp(section->name, ".init.plt") ||
		       !strcmp(section->name, ".text.ftrace_trampoline"));
}

static enum layout_part part_of(const struct elf_section *section)
{
	if (!(section->flags & SHF_ALLOC) || section->type == SHT_NULL)
		return LAYOUT_NOWHERE;
	if (!(section->flags & SHF_EXECINSTR) || is_placeholder(section))
		return LAYOUT_DATA;
	return strncmp(section->name, ".init", 5) ? LAYOUT_CODE : LAYOUT_INIT;
}

/* Adds the sections of PART from *END on. */
static int lay_out_part(struct elf_image *image, enum layout_part part, uint64_t *end)
{
	for (size_t i = 1; i < image->section_count; i++) {
		struct elf_section *section = &image->sections[i].header;
		uint64_t align = section->align ? section->align : 1;

		if (part_of(section) != part)
			continue;
		if (align & (align - 1) || align > MAX_ALIGN)
			return -EBADMSG;
		section->address = (*end + align - 1) & ~(align - 1);
		if (section->size > MAX_ADDRESS - section->address)
			return -E2BIG;
		*end = section->address + section->size;
	}
	return 0;
}

/* Where the code lies; none of it is at an offset of the file that holds for all sections. */
static int add_code_segment(struct elf_image *image, uint64_t end)
{
	free(image->segments);
	image->segment_count = 0;
	image->segments = calloc(1, sizeof(*image->segments));
	if (!image->segments)
		return -ENOMEM;
	image->segments[image->segment_count++] = (struct elf_segment){
		.type = PT_LOAD,
		.flags = PF_R | PF_X,
		.memory_size = end,
	};
	return 0;
}

/* A section may be named by several: the first one counts. */
static void find_relocations(struct elf_image *image)
{
	for (size_t i = 1; i < image->section_count; i++) {
		const struct elf_section *section = &image->sections[i].header;

		if (section->type == SHT_RELA && section->info < image->section_count &&
			!image->sections[section->info].rela)
			image->sections[section->info].rela = (uint32_t)i;
	}
}

int elf_relocatable_lay_out(struct elf_image *image)
{
	uint64_t end = 0, code_end = 0;
	int err = 0;

	for (int part = 0; part < LAYOUT_PARTS && !err; part++) {
		err = lay_out_part(image, (enum layout_part)part, &end);
		if (part == LAYOUT_INIT)
			code_end = end;
	}
	if (!err)
		err = add_code_segment(image, code_end);
	if (err)
		return err;
	find_relocations(image);
	image->is_laid_out = true;
	image->relocations_left = image->map_size / RELA_BYTES;
	return 0;
}

uint64_t elf_image_symbol_address(const struct elf_image *image, const Elf64_Sym *symbol)
{
	if (!image->is_laid_out || symbol->st_shndx >= image->section_count)
		return symbol->st_value;
	return image->sections[symbol->st_shndx].header.address + symbol->st_value;
}

/* ---- relocations ---------------------------------------------------------------------------- */

/* What a relocation writes: SIZE bytes of S + A, from which P is subtracted if RELATIVE. */
struct relocation_kind {
	uint8_t size;
	bool relative;
};

static struct relocation_kind kind_x86_64(uint32_t type)
{
	switch (type) {
	case R_X86_64_64:
		return (struct relocation_kind){ .size = 8 };
	case R_X86_64_PC64:
		return (struct relocation_kind){ .size = 8, .relative = true };
	case R_X86_64_32:
	case R_X86_64_32S:
		return (struct relocation_kind){ .size = 4 };
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
		return (struct relocation_kind){ .size = 4, .relative = true };
	default:
		return (struct relocation_kind){ 0 };
	}
}

static struct relocation_kind kind_aarch64(uint32_t type)
{
	switch (type) {
	case R_AARCH64_ABS64:
		return (struct relocation_kind){ .size = 8 };
	case R_AARCH64_PREL64:
		return (struct relocation_kind){ .size = 8, .relative = true };
	case R_AARCH64_ABS32:
		return (struct relocation_kind){ .size = 4 };
	case R_AARCH64_PREL32:
		return (struct relocation_kind){ .size = 4, .relative = true };
	default:
		return (struct relocation_kind){ 0 };
	}
}

/*
 * The address of symbol NUMBER of SYMBOLS. One of another file has none: what refers to it is not
 * about this file's code, and UINT64_MAX is no code's address.
 */
static uint64_t symbol_address(
	const struct elf_image *image, struct cursor symbols, uint32_t number)
{
	const uint8_t *bytes;
	Elf64_Sym symbol;

	cursor_seek(&symbols, (uint64_t)number * sizeof(symbol));
	bytes = cursor_bytes(&symbols, sizeof(symbol));
	if (!bytes)
		return UINT64_MAX;
	memcpy(&symbol, bytes, sizeof(symbol));
	if (symbol.st_shndx == SHN_ABS)
		return symbol.st_value;
	if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= image->section_count)
		return UINT64_MAX;
	return elf_image_symbol_address(image, &symbol);
}

static void relocate_word(const struct elf_image *image, const struct elf_section *section,
	const struct cursor *symbols, const Elf64_Rela *rela, uint8_t *bytes, size_t size)
{
	uint32_t type = (uint32_t)ELF64_R_TYPE(rela->r_info);
	struct relocation_kind kind =
		image->machine == EM_AARCH64 ? kind_aarch64(type) : kind_x86_64(type);
	uint64_t value;

	if (!kind.size || rela->r_offset > size || kind.size > size - rela->r_offset)
		return;
	value = symbol_address(image, *symbols, (uint32_t)ELF64_R_SYM(rela->r_info));
	if (value != UINT64_MAX)
		value += (uint64_t)rela->r_addend;
	if (kind.relative)
		value -= section->address + rela->r_offset;
	memcpy(bytes + rela->r_offset, &value, kind.size);
}

static void elf_relocatable_apply(
	struct elf_image *image, const struct image_section *section, uint8_t *bytes, size_t size)
{
	const struct elf_section *table = &image->sections[section->rela].header;
	struct cursor relocations = elf_image_file(image, table->file_off, table->size);
	struct cursor symbols = cursor_over("", 0);

	if (table->link < image->section_count &&
		image->sections[table->link].header.type == SHT_SYMTAB)
		symbols = elf_image_section_bytes(image, table->link);
	while (!relocations.bad && cursor_left(&relocations) >= RELA_BYTES) {
		Elf64_Rela rela;

		/* Tables of a forged file may be the same bytes. */
		if (!image->relocations_left)
			return;
		image->relocations_left--;
		memcpy(&rela, cursor_bytes(&relocations, RELA_BYTES), RELA_BYTES);
		relocate_word(image, &section->header, &symbols, &rela, bytes, size);
	}
}

/* Code is not relocated: nobody reads it. */
static bool is_relocated(const struct elf_image *image, const struct image_section *section)
{
	const struct elf_section *header = &section->header;

	if (!image->is_laid_out || !section->rela || header->flags & SHF_EXECINSTR)
		return false;
	return header->type == SHT_PROGBITS || header->type == SHT_X86_64_UNWIND;
}

struct cursor elf_relocatable_bytes(
	struct elf_image *image, struct image_section *section, struct cursor bytes)
{
	size_t size = cursor_left(&bytes);

	if (!is_relocated(image, section) || !size)
		return bytes;
	if (!section->inflated) {
		if (!elf_image_may_hold(image, size))
			return cursor_over("", 0);
		section->inflated = malloc(size);
		if (!section->inflated)
			return cursor_over("", 0);
		memcpy(section->inflated, bytes.at, size);
	}
	elf_relocatable_apply(image, section, section->inflated, size);
	return cursor_over(section->inflated, size);
}
