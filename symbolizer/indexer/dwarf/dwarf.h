/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What this room reads into a writer: functions, inline trees and lines from DWARF. The input is
 * hostile: -EBADMSG costs the caller this source (or a part of it), nothing more. -ENOMEM and
 * -E2BIG end the build.
 */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/writer/writer.h"

/*
 * .debug_*: functions, inline trees, lines of DWARF 2 to 5. Units that are all in SKIP_LANGUAGE
 * (DW_LANG_*; 0 = none) are left out: another source answers for them. *RET_BROKEN_UNITS counts
 * units given up.
 */
int dwarf_read(struct elf_image *image, uint32_t skip_language, struct index_writer *w,
	uint32_t *ret_units, uint32_t *ret_broken_units);

/* The same of a module whose DWARF is in other files. */
struct images;
int dwarf_read_images(const struct images *images, uint32_t skip_language, struct index_writer *w,
	uint32_t *ret_units, uint32_t *ret_broken_units);

/* Offset of MEMBER in structure TYPE (`runtime.g`, `goid`), from DWARF; -ENOENT when not there. */
int dwarf_member_offset(
	struct elf_image *image, const char *type, const char *member, uint64_t *ret_offset);
