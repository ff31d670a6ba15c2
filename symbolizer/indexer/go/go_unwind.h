/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Unwind rules of Go functions, from the pclntab: how far the stack pointer is below the return
 * address at each instruction (pcsp), as the runtime unwinds itself, and rules by name for what the
 * runtime does otherwise.
 */
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/go/gopclntab.h"

struct go_unwind {
	const struct gopclntab *table; /* borrowed */
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	bool framed; /* whatever the compiler made has a frame where it calls */
	struct gopclntab_runs runs; /* of the function at hand */
};

void go_unwind_init(struct go_unwind *g, const struct gopclntab *table);
void go_unwind_deinit(struct go_unwind *g);

typedef void go_unwind_sink(
	void *context, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule);
/* The rows of F, ascending; none where it has no pcsp (C code). -EBADMSG, -ENOMEM. */
int go_unwind_function(struct go_unwind *g, const struct gopclntab_function *f,
	go_unwind_sink *sink, void *context);
/* What is valid at F's first instruction, mostly. */
struct abi_unwind_rule go_unwind_entry_rule(
	const struct go_unwind *g, const struct gopclntab_function *f);
