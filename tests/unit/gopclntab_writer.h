/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes small Go programs for the tests: a pclntab of each format, with its inline trees and its
 * module data, in an ELF file. What a well-formed file would hold can be overridden in the struct
 * before gopclntab_writer_file().
 *
 *	gopclntab_writer_init(&w, 20);
 *	gopclntab_writer_function(&w, &(struct gopclntab_function_spec){ .entry = 0, … });
 *	fd = gopclntab_writer_file(&w, 0x40);
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "tests/unit/elf_writer.h"

enum {
	GO_TEXT = 0x401000,
	GO_TEXT_SIZE = 0x1000,
	GO_PCLNTAB = 0x500000,
	GO_FUNCDATA = 0x540000,
	GO_MODULE = 0x600000,
	GO_NO_TREE = UINT32_MAX,
};

/* VALUE applies to SIZE bytes. */
struct gopclntab_table_part {
	uint32_t size;
	int32_t value;
};

struct gopclntab_function_spec {
	uint32_t entry; /* offset from GO_TEXT */
	uint32_t name, start_line;
	uint32_t pcsp, pcfile, pcln, pcinline;
	uint8_t flags;
	uint32_t tree; /* first of its inline entries, or GO_NO_TREE */
	uint32_t pcdata_count; /* 0 = 3 */
};

struct gopclntab_writer {
	unsigned int format; /* 16, 18 or 20, for Go 1.16, 1.18, 1.20 */
	uint32_t magic;
	uint8_t quantum, pointer_size;
	uint64_t functions; /* count in the header; 0 = the right one */
	uint64_t text_start; /* in the header */
	uint64_t offsets[5]; /* table offsets in the header; UINT64_MAX = the right one */
	const char *section, *module_section;
	bool no_module;
	uint64_t module_functions; /* length of ftab in the module data; 0 = the right one */
	uint64_t module_text;
	uint64_t module_funcdata;
	uint32_t module_funcdata_at; /* offset in the module data; 0 = that of FORMAT */
	struct buffer names, units, files, pctab, entries, records, trees;
	uint32_t count, first_entry;
	const uint8_t *code; /* GO_TEXT_SIZE bytes of text; NULL = arbitrary */
	struct elf_writer elf; /* for more sections; initialized */
};

void gopclntab_writer_init(struct gopclntab_writer *w, unsigned int format);
void gopclntab_writer_deinit(struct gopclntab_writer *w);
uint32_t gopclntab_writer_name(struct gopclntab_writer *w, const char *name);
/* Returns the number of the file in the only unit. */
uint32_t gopclntab_writer_path(struct gopclntab_writer *w, const char *path);
/* Writes a table of COUNT parts; returns its offset. */
uint32_t gopclntab_writer_table(
	struct gopclntab_writer *w, const struct gopclntab_table_part *parts, size_t count);
/* Adds an inline entry and returns its number; START_LINE only from 1.20 on. */
uint32_t gopclntab_writer_inline(
	struct gopclntab_writer *w, uint32_t name, uint32_t parent_pc, uint32_t start_line);
void gopclntab_writer_function(
	struct gopclntab_writer *w, const struct gopclntab_function_spec *spec);
/* Writes the pclntab to RET_BLOB; END is the end of the last function, relative to GO_TEXT. */
void gopclntab_writer_blob(struct gopclntab_writer *w, uint32_t end, struct buffer *ret_blob);
/* Returns the ELF file as a memfd. */
int gopclntab_writer_file(struct gopclntab_writer *w, uint32_t end);
