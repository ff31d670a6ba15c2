/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state that the sources of one build share. Each source reads its part of the module's files
 * into the writer and notes what later sources can skip. builder.c has the table of sources.
 */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/elf/images.h"
#include "symbolizer/indexer/source_range.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/sandbox/job.h"

struct source_build {
	const struct images *images;
	struct index_writer *w;
	struct sandbox_result *result;
	bool wants_functions;
	/* Already answered by an earlier, better source. */
	struct source_range answered; /* ELF addresses */
	uint32_t answered_language; /* DWARF's number; units entirely in it are skipped; 0 = none */
};
