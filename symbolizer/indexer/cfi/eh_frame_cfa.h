/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Runs an FDE's instructions (DWARF 5, 6.4.2) to get the rows of its table, each as a rule. */
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/indexer/cfi/eh_frame.h"
#include "symbolizer/indexer/cfi/unwind_row.h"

/* Runs a CIE's initial instructions. Sets `broken` if they are malformed. */
void cfi_start(const struct cfi_section *s, struct cfi_cie *cie);

/*
 * Passes the rows of FDE to SINK in batches: each row is valid up to the start of the next, the
 * last one up to HIGH. They are ascending, within the FDE's range, and not empty; the sink may
 * modify them. Returns -EBADMSG if the FDE is malformed; the rows before have been passed.
 */
typedef void cfi_row_sink(void *context, struct unwind_row *rows, size_t count, uint64_t high);
int cfi_run(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfi_fde *fde,
	cfi_row_sink *sink, void *context);
