/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads build IDs of mapped files for the process table and for `fathom symbolize`: the kernel's
 * word where there is one, else that of a sandboxed child. None of the file's bytes are parsed
 * here.
 */
#include "base/build_id_reader.h"
#include "symbolizer/sandbox/note_reader.h"

struct build_ids {
	struct build_id_reader reader;
	struct note_reader notes;
};

/* METRICS is borrowed. */
void build_ids_init(struct build_ids *ids, struct metrics *metrics);
void build_ids_deinit(struct build_ids *ids);
