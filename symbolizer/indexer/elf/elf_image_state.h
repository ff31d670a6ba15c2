/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by elf_image.c, elf_sections.c, elf_relocations.c and elf_relocatable.c. */
#include <libelf.h>

#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/elf/scratch.h"

struct image_section {
	struct elf_section header;
	struct cursor bytes; /* once `loaded` */
	void *inflated; /* decompressed or relocated bytes, owned; NULL = none */
	void *scratched; /* decompressed bytes, a mapping of the scratch file; NULL = none */
	size_t scratched_bytes;
	uint32_t rela; /* number of its table of relocations; 0 = none */
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
	int peek_fd; /* elf_image_peek_in(); -1 = none */
	Elf *elf;
	uint16_t machine, type;
	uint64_t entry_point;
	struct elf_segment *segments;
	size_t segment_count;
	struct image_section *sections;
	size_t section_count;
	size_t inflated_bytes; /* of all sections, against a limit */
	struct elf_scratch *scratch; /* for big ones; borrowed; NULL = none */
	struct relative_relocation *relocations; /* by address, once `relocations_read` */
	size_t relocation_count, relocation_capacity;
	bool relocations_read;
	/* Of a relocatable file: */
	bool is_laid_out; /* its sections have addresses */
	size_t relocations_left; /* that may still be applied, against a limit */
};

/* SIZE bytes of the file from OFFSET; a `bad` cursor if the file is shorter. */
struct cursor elf_image_file(const struct elf_image *image, uint64_t offset, uint64_t size);
/* elf_sections.c: fills the table of sections from the section headers. */
int elf_sections_read(struct elf_image *image);
void elf_sections_free(struct elf_image *image);
/* Counts SIZE bytes of memory against the limit of the file; false if they are too many. */
bool elf_image_may_hold(struct elf_image *image, uint64_t size);
/* elf_relocatable.c: gives each loaded section of a relocatable file an address. */
int elf_relocatable_lay_out(struct elf_image *image);
/* SECTION's BYTES after its relocations; an empty cursor if there is no memory for them. */
struct cursor elf_relocatable_bytes(
	struct elf_image *image, struct image_section *section, struct cursor bytes);
