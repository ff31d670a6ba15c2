/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes small ELF files for the tests, byte by byte, so that each broken case can be made on
 * purpose. An error of the test itself aborts.
 *
 *	struct elf_writer w;
 *	elf_writer_init(&w);
 *	text = elf_writer_code(&w, ".text", 0x1000, 0x200);
 *	elf_writer_symbol(&w, &(struct elf_symbol_spec){ "main", 0x1000, 32, .section = text });
 *	fd = elf_writer_file(&w);
 *	elf_writer_deinit(&w);
 */
#include <elf.h>
#include <stdbool.h>

#include "base/buffer.h"

enum { ELF_WRITER_SECTIONS = 64, ELF_WRITER_SEGMENTS = 64 };

struct elf_section_spec {
	const char *name;
	uint32_t type; /* 0 = SHT_PROGBITS */
	uint64_t flags, address;
	const void *bytes; /* copied; NULL = SIZE bytes of 0x90 */
	uint64_t size;
	uint32_t link, info;
	uint64_t entry_size;
};

struct elf_symbol_spec {
	const char *name;
	uint64_t address, size;
	uint32_t section;
	uint8_t bind; /* STB_*; default STB_LOCAL */
	bool notype; /* STT_NOTYPE instead of STT_FUNC */
	uint8_t type; /* any other STT_* */
	bool dynamic; /* in .dynsym instead of .symtab */
};

struct elf_writer {
	uint16_t machine, type; /* may be changed after init; default x86_64, ET_DYN */
	uint64_t entry_point;
	bool no_segments; /* no PT_LOAD for allocated sections */
	bool no_section_headers;
	Elf64_Shdr sections[ELF_WRITER_SECTIONS];
	uint32_t section_count; /* including section 0, the null section */
	Elf64_Phdr segments[ELF_WRITER_SEGMENTS];
	uint32_t segment_count;
	struct buffer file; /* the file from its start; finish fills in the headers */
	struct buffer names;
	struct buffer symbols[2], symbol_names[2]; /* .symtab, .dynsym */
	bool finished;
};

void elf_writer_init(struct elf_writer *w);
void elf_writer_deinit(struct elf_writer *w);
/* Return the section's number. Each allocated section gets a PT_LOAD, a note also a PT_NOTE. */
uint32_t elf_writer_section(struct elf_writer *w, const struct elf_section_spec *spec);
uint32_t elf_writer_code(struct elf_writer *w, const char *name, uint64_t address, uint64_t size);
uint32_t elf_writer_build_id(struct elf_writer *w, uint64_t address, const void *id, uint32_t size);
void elf_writer_segment(struct elf_writer *w, const Elf64_Phdr *segment);
void elf_writer_symbol(struct elf_writer *w, const struct elf_symbol_spec *symbol);
/* Completes the file in w->file (headers, symbol tables, names). Call once. */
void elf_writer_finish(struct elf_writer *w);
/* Finishes the file and returns it as a memfd. */
int elf_writer_file(struct elf_writer *w);
/* Returns a memfd with these bytes. */
int memory_file(const void *bytes, size_t size);
