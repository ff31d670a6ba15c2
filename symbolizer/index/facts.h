/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Facts about a module that are stored unchanged in its index's header (format.h). */
#include <stdint.h>

#include "base/module_id.h"

/* How to read goroutine IDs in a Go program. */
struct index_go {
	uint32_t version; /* 1.21 → 21; 0 = not a Go program */
	uint32_t supported; /* 1: the fields below are known */
	int64_t g_tls_offset; /* from the thread pointer; or ABI_GO_G_IN_REGISTER */
	uint32_t g_m, m_curg, g_goid;
	uint32_t g_stack_hi, g_sched_bp, g_labels; /* g_labels 0 = unknown */
	uint32_t labels_kind; /* 0 none, 1 map, 2 slice */
	uint32_t reserved;
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
