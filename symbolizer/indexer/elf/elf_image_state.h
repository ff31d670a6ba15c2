/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by elf_image.c, elf_sections.c and elf_relocations.c only. */
#include <libelf.h>

#include "symbolizer/indexer/elf/elf_image.h"

struct image_section {
	struct elf_section header;
	struct cursor bytes; /* once `loaded` */
	void *inflated; /* decompressed bytes, owned; NULL = none */
	bool loaded;
};

struct relative_relocation {
	uint64_t address;
	uint64_t value;
};

struct elf_image {
	const uint8_t *map; /* the whole file */
	size_t map_size;
	bool borrowed; /* MAP is the caller's memory, not a mapped file */
	Elf *elf;
	uint16_t machine, type;
	uint64_t entry_point;
	struct elf_segment *segments;
	size_t segment_count;
	struct image_section *sections;
	size_t section_count;
	size_t inflated_bytes; /* of all sections, against a limit */
	struct relative_relocation *relocations; /* by address, once `relocations_read` */
	size_t relocation_count, relocation_capacity;
	bool relocations_read;
};

/* SIZE bytes of the file from OFFSET; a `bad` cursor if the file is shorter. */
struct cursor elf_image_file(const struct elf_image *image, uint64_t offset, uint64_t size);
/* elf_sections.c: fills the table of sections from the section headers. */
int elf_sections_read(struct elf_image *image);
void elf_sections_free(struct elf_image *image);
