/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads functions, inline trees and lines from DWARF into an index writer. The input is untrusted:
 * after -EBADMSG the build goes on without this source (or part of it). -ENOMEM and -E2BIG end the
 * build.
 */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/writer/writer.h"

/*
 * Reads the .debug_* sections, DWARF 2 to 5. Units in SKIP_LANGUAGE (DW_LANG_*; 0 = none) are left
 * to another source. *RET_BROKEN_UNITS counts malformed units.
 */
int dwarf_read(struct elf_image *image, uint32_t skip_language, struct index_writer *w,
	uint32_t *ret_units, uint32_t *ret_broken_units);

/* Like dwarf_read(), for a module whose DWARF is in debug files. */
struct images;
int dwarf_read_images(const struct images *images, uint32_t skip_language, struct index_writer *w,
	uint32_t *ret_units, uint32_t *ret_broken_units);

/* Finds the offset of MEMBER in structure TYPE (`runtime.g`, `goid`). Returns -ENOENT if absent. */
int dwarf_member_offset(
	struct elf_image *image, const char *type, const char *member, uint64_t *ret_offset);
