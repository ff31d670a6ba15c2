/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An ELF file as seen by the index's sources: segments, named sections with their bytes
 * (decompressed: SHF_COMPRESSED with zlib or zstd, and .zdebug_*), bytes at an address. Built on
 * libelf; runs only in the sandbox. 64-bit little-endian x86_64 and aarch64 files.
 */
#include <elf.h>
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
	uint32_t link, info;
	uint64_t flags; /* SHF_* */
	uint64_t address, file_off, size, entry_size, align;
	uint32_t number;
};

/*
 * Opens an executable, shared object or relocatable file (object, kernel module); FD is borrowed.
 * The sections of a relocatable file get addresses (elf_relocatable.c), and its only segment is
 * their code, without bytes. Returns -EBADMSG if it is not a readable ELF file, -EOPNOTSUPP for
 * another class, byte order, machine or type.
 */
int elf_image_open(int fd, struct elf_image **ret_image);
/* Like elf_image_open(), of any type and as it is: no addresses in relocatable files. */
int elf_image_open_any(int fd, struct elf_image **ret_image);
/* Like elf_image_open_any(), of SIZE bytes in memory, which must outlive the image. */
int elf_image_open_bytes(const void *bytes, size_t size, struct elf_image **ret_image);
void elf_image_destroy(struct elf_image *image);
/* Big sections that are decompressed from now on go to SCRATCH, which must outlive the image. */
struct elf_scratch;
void elf_image_use_scratch(struct elf_image *image, struct elf_scratch *scratch);

/* Lets elf_image_peek() read from FD, which has this file and must outlive the image. */
void elf_image_peek_in(struct elf_image *image, int fd);

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
 * Returns a section's bytes, decompressed on first use and cached; an empty cursor if the section
 * is absent, NOBITS, broken or over the size limit. `.debug_X` also finds `.zdebug_X`.
 */
struct cursor elf_image_bytes(struct elf_image *image, const char *name);
struct cursor elf_image_section_bytes(struct elf_image *image, size_t number);
/*
 * Copies up to SIZE bytes of SECTION from OFFSET on; returns how many there are. For a few bytes
 * far from each other: in a mapped file each would be a page fault, which maps sixteen pages.
 */
size_t elf_image_peek(const struct elf_image *image, const struct cursor *section, uint64_t offset,
	void *bytes, size_t size);
/* The address of a symbol of the file, not one that is undefined. */
uint64_t elf_image_symbol_address(const struct elf_image *image, const Elf64_Sym *symbol);
/* SIZE bytes of the file that are loaded at ADDRESS; an empty, bad cursor if there are fewer. */
struct cursor elf_image_at(const struct elf_image *image, uint64_t address, uint64_t size);
/* All file bytes from ADDRESS to the end of its segment. */
struct cursor elf_image_from(const struct elf_image *image, uint64_t address);
/*
 * Reads the 64-bit word at ADDRESS after dynamic relocation: a RELATIVE relocation's addend
 * overrides the file's word.
 */
bool elf_image_word(struct elf_image *image, uint64_t address, uint64_t *ret_word);
void elf_image_build_id(const struct elf_image *image, struct build_id *ret_id);
/* Size of the file, and of what was decompressed of it. */
uint64_t elf_image_bytes_held(const struct elf_image *image);
struct cursor elf_image_whole(const struct elf_image *image); /* the whole file */
/* CRC-32 (zlib, IEEE 802.3) of the whole file, as in .gnu_debuglink. */
uint32_t elf_image_crc32(const struct elf_image *image);
/*
 * Lets the kernel reclaim SIZE bytes that have been read, if they are pages of the mapped file or
 * of the scratch file; the next read gets them from the page cache.
 */
void elf_image_forget(const struct elf_image *image, const void *bytes, size_t size);
/*
 * Called when SECTION has been read up to offset READ: forgets what is before, some MB at a time.
 * *FORGOTTEN is the offset up to which that was done.
 */
void elf_image_forget_read(const struct elf_image *image, const struct cursor *section,
	uint64_t read, uint64_t *forgotten);
