/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Runs an FDE's instructions (DWARF 5, 6.4.2): out come the rows of its table, each as a rule. */
#include "bpf/abi/unwind.h"
#include "symbolizer/index/eh_frame.h"

/* Runs a CIE's own instructions, which each of its FDEs starts from. Marks it broken. */
void cfi_start(const struct cfi_section *s, struct cfi_cie *cie);

/*
 * Gives the rows of FDE to SINK: RULE is valid in [low, high), ascending, inside the FDE's range,
 * never empty. -EBADMSG: the rest makes no sense; rows up to there have been given.
 */
typedef void cfi_row_sink(
	void *context, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule);
int cfi_run(const struct cfi_section *s, const struct cfi_cie *cie, const struct cfi_fde *fde,
	cfi_row_sink *sink, void *context);
