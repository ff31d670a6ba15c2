/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Runs an FDE's instructions (DWARF 5, 6.4.2): out come the rows of its table, each as a rule. */
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/indexer/cfi/eh_frame.h"
#include "symbolizer/indexer/cfi/unwind_row.h"

/* Runs a CIE's own instructions, which each of its FDEs starts from. Marks it broken. */
void cfi_start(const struct cfi_section *s, struct cfi_cie *cie);

/*
 * Gives the rows of FDE to SINK, some at a time: each is valid up to where the next one begins, the
 * last one up to HIGH. Ascending, inside the FDE's range, none of them empty; the sink may change
 * them. -EBADMSG: the rest makes no sense; rows up to there have been given.
 */
typedef void cfi_row_sink(void *context, struct unwind_row *rows, size_t count, uint64_t high);
int cfi_run(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfi_fde *fde,
	cfi_row_sink *sink, void *context);
