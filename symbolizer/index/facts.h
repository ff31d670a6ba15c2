/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Facts about a module that are stored unchanged in its index's header (format.h). */
#include <stdint.h>

#include "base/module_id.h"

enum { INDEX_RUNTIME_WORDS = 11 };

/*
 * Facts about the language runtime that a program brings along. Only the runtime's rows in the
 * indexer and in the sampler know what they mean: symbolizer/index/runtime_NAME.h.
 */
struct index_runtime {
	uint32_t facts[INDEX_RUNTIME_WORDS]; /* the first one is 0 if there is no runtime */
	uint32_t kind; /* counts from 0; each runtime_NAME.h has its own */
};

/* struct debug_names as stored in the index: strings are offsets. */
struct index_debug {
	uint32_t link, link_crc;
	uint32_t alternate;
	uint32_t flags; /* enum index_debug_flags */
	struct build_id alternate_id;
	uint8_t padding[3];
};

enum index_debug_flags {
	INDEX_HAS_DWARF = 1 << 0, /* the file itself has DWARF, readable or not */
	INDEX_ALTERNATE_OF_DEBUG = 1 << 1, /* the debug file names the alternate, not the file */
};

/* Results of reading the unwind tables. */
struct index_unwind {
	uint32_t functions; /* entries (FDEs) read */
	uint32_t broken; /* entries (FDEs) given up */
	uint32_t pages, rows;
	uint32_t unsupported; /* rows that only tell the unwinder to stop */
	uint32_t left_out; /* pages and rules dropped because of a page's limits */
};
