/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What this room reads into a writer: unwind tables from call frame information, and the names of
 * PLT stubs. The input is hostile: -EBADMSG costs the caller this source (or a part of it), nothing
 * more. -ENOMEM ends the build.
 */
#include "symbolizer/indexer/cfi/eh_frame.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/source_range.h"
#include "symbolizer/indexer/writer/writer.h"

/*
 * Reads the tables of IMAGE into the writer, what sections say of functions inside SKIP left out
 * (Go code, which the pclntab describes). Broken entries and rows that nobody understands are
 * counted there. -ENOENT: there are none. -E2BIG: over a limit; what was read stays.
 */
int unwind_read(struct elf_image *image, const struct source_range *skip, struct index_writer *w);

/*
 * The same from sections: at an address that several describe, the first of them counts. What they
 * leave out from the file's ENTRY_POINT on (0: it has none) has no caller.
 */
int unwind_read_sections(const struct cfi_section *sections, size_t count, uint64_t entry_point,
	const struct source_range *skip, struct index_writer *w);

/* .plt, .plt.sec, .plt.got: each stub that jumps to `puts` is a function `puts@plt`. */
int plt_read(struct elf_image *image, struct index_writer *w);
