/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One build, as its sources share it: each reads what it knows of the module's files into the
 * writer, and says what the sources after it need not answer. The table of them is in builder.c.
 */
#include <stdint.h>

#include "symbolizer/indexer/elf/images.h"
#include "symbolizer/indexer/source_range.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/sandbox/job.h"

struct source_build {
	const struct images *images;
	struct index_writer *w;
	struct sandbox_result *result;
	/* Answered by a source before, and better than the next ones could. */
	struct source_range answered; /* ELF addresses */
	uint32_t answered_language; /* DWARF's number: units that are all in it; 0 = none */
};
