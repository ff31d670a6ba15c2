/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What dwarf_read() and dwarf_member_offset() do once the sections are found: for fuzzing. */
#include "symbolizer/indexer/dwarf/dwarf_file.h"

int dwarf_read_sections(const struct dwarf_sections *sections, uint32_t skip_language,
	struct index_writer *w, uint32_t *ret_units, uint32_t *ret_broken_units);
int dwarf_member_find(const struct dwarf_sections *sections, const char *type, const char *member,
	uint64_t *ret_offset);
/* Finds the sections of an image; its executable ranges go to CODE, of MAX_CODE entries. */
void dwarf_sections_find(struct elf_image *image, struct dwarf_code *code, size_t max_code,
	struct dwarf_sections *ret_sections);
enum { DWARF_MAX_CODE = 256 };
