/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What unwind tables are made from: unwind_file.c collects it from a file, unwind.c runs it. */
#include <stddef.h>

#include "symbolizer/indexer/cfi/eh_frame.h"
#include "symbolizer/indexer/cfi/plt_unwind.h"
#include "symbolizer/indexer/cfi/unwind_source.h"
#include "symbolizer/indexer/source_range.h"
#include "symbolizer/indexer/writer/writer.h"

enum { UNWIND_SECTIONS = 8, UNWIND_LANDMARKS = 19, UNWIND_CODE_RANGES = 16 };

struct unwind_input {
	const struct cfi_section *sections;
	size_t section_count; /* at most UNWIND_SECTIONS */
	const struct source_range *skip; /* call frame information inside of it is ignored */
	const struct unwind_source *source; /* NULL = none */
	struct landmark landmarks[UNWIND_LANDMARKS]; /* ascending; size 0 = none */
	const struct unwind_gap_source *gaps; /* NULL = none */
	struct source_range code[UNWIND_CODE_RANGES]; /* where there may be gaps, ascending */
	size_t code_count;
	struct index_writer *w;
};

/* As unwind_read(). */
int unwind_write(const struct unwind_input *input);
