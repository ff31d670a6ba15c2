/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads unwind tables from call frame information and the names of PLT stubs into an index writer.
 * The input is untrusted: after -EBADMSG the build goes on without this source (or part of it).
 * -ENOMEM ends the build.
 */
#include "symbolizer/indexer/cfi/eh_frame.h"
#include "symbolizer/indexer/cfi/unwind_source.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/source_range.h"
#include "symbolizer/indexer/writer/writer.h"

/*
 * Writes the unwind tables of IMAGE, with the functions of SOURCE and the rules that GAPS has for
 * code between all functions (NULL = none). Ignores entries and gaps inside SKIP, which SOURCE
 * describes. The writer gets the counts of malformed entries and unsupported rows. Returns -ENOENT
 * if there are no tables, -E2BIG over a limit; what was read until then is written.
 */
int unwind_read(struct elf_image *image, const struct source_range *skip,
	const struct unwind_source *source, const struct unwind_gap_source *gaps,
	struct index_writer *w);

/*
 * Like unwind_read(), from given sections. If several describe an address, the first one counts.
 * Code without an entry at the file's ENTRY_POINT (0 = none) has no caller.
 */
int unwind_read_sections(const struct cfi_section *sections, size_t count, uint64_t entry_point,
	const struct source_range *skip, struct index_writer *w);

/* Passes each entry that IMAGE has for a function to SINK; malformed ones are skipped. */
int unwind_each_function(struct elf_image *image, cfi_fde_sink *sink, void *context);

/* Adds a symbol `puts@plt` for each stub in .plt, .plt.sec and .plt.got that jumps to `puts`. */
int plt_read(struct elf_image *image, struct index_writer *w);
