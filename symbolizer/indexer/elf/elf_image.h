/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An ELF file as the index's sources see it: segments, named sections with their bytes
 * (decompressed: SHF_COMPRESSED with zlib or zstd, and .zdebug_*), bytes at an address. Built on
 * libelf; runs only in the sandbox. 64-bit little-endian x86_64 and aarch64 files.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/module_id.h"

struct elf_image;

struct elf_segment {
	uint32_t type; /* PT_* */
	uint32_t flags; /* PF_* */
	uint64_t address, file_off, file_size, memory_size, align;
};

struct elf_section {
	const char *name;
	uint32_t type; /* SHT_* */
	uint32_t link;
	uint64_t flags; /* SHF_* */
	uint64_t address, file_off, size, entry_size;
	uint32_t number;
};

/* -EBADMSG not a readable ELF file, -EOPNOTSUPP another class, order or machine. FD is borrowed. */
int elf_image_open(int fd, struct elf_image **ret_image);
/* The same of any type, such as the files with parts of DWARF that linkers do not see (ET_REL). */
int elf_image_open_any(int fd, struct elf_image **ret_image);
/* The same of SIZE bytes in memory, which must outlive it. */
int elf_image_open_bytes(const void *bytes, size_t size, struct elf_image **ret_image);
void elf_image_destroy(struct elf_image *image);

uint16_t elf_image_machine(const struct elf_image *image); /* EM_* */
uint16_t elf_image_type(const struct elf_image *image); /* ET_* */
uint64_t elf_image_entry_point(const struct elf_image *image); /* ELF address; 0 = none */
size_t elf_image_segment_count(const struct elf_image *image);
struct elf_segment elf_image_segment(const struct elf_image *image, size_t number);
size_t elf_image_section_count(const struct elf_image *image);
struct elf_section elf_image_section(const struct elf_image *image, size_t number);
bool elf_image_find(
	const struct elf_image *image, const char *name, struct elf_section *ret_section);

/*
 * A section's bytes, decompressed on first use and kept. Absent, NOBITS, broken or over the size
 * limit: an empty cursor. `.debug_X` also finds `.zdebug_X`.
 */
struct cursor elf_image_bytes(struct elf_image *image, const char *name);
struct cursor elf_image_section_bytes(struct elf_image *image, size_t number);
/* SIZE bytes of the file that are loaded at ADDRESS; an empty, bad cursor where there are fewer. */
struct cursor elf_image_at(const struct elf_image *image, uint64_t address, uint64_t size);
/* All bytes from ADDRESS to the end of its segment's file part. */
struct cursor elf_image_from(const struct elf_image *image, uint64_t address);
/* The 64-bit word at ADDRESS after dynamic relocation: a RELATIVE relocation's addend wins. */
bool elf_image_word(struct elf_image *image, uint64_t address, uint64_t *ret_word);
void elf_image_build_id(const struct elf_image *image, struct build_id *ret_id);
struct cursor elf_image_whole(const struct elf_image *image); /* all its bytes */
/* CRC-32 (of zlib and IEEE 802.3) of the whole file, as .gnu_debuglink has it. */
uint32_t elf_image_crc32(const struct elf_image *image);
/*
 * Lets the kernel take back the memory of SIZE bytes that have been read, where they are pages of
 * the mapped file; read again, they come back from the page cache.
 */
void elf_image_forget(const struct elf_image *image, const void *bytes, size_t size);
