/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* dwarf_read() and dwarf_member_offset() on given sections, for fuzzing. */
#include "symbolizer/indexer/dwarf/dwarf_file.h"

int dwarf_read_sections(const struct dwarf_sections *sections, uint32_t skip_language,
	struct index_writer *w, uint32_t *ret_units, uint32_t *ret_broken_units);
int dwarf_member_find(const struct dwarf_sections *sections, const char *type, const char *member,
	uint64_t *ret_offset);
/* Finds the sections of an image; stores its executable ranges in CODE, which has MAX_CODE entries.
 */
void dwarf_sections_find(struct elf_image *image, struct dwarf_code *code, size_t max_code,
	struct dwarf_sections *ret_sections);
enum { DWARF_MAX_CODE = 256 };
