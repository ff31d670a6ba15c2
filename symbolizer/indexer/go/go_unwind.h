/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Unwind rules of Go functions, from the pclntab: the distance from the stack pointer to the return
 * address at each instruction (pcsp), which the runtime unwinds with, and special rules by name for
 * functions of the runtime that deviate from it.
 */
#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/cfi/unwind_source.h"
#include "symbolizer/indexer/go/gopclntab.h"

struct go_unwind {
	const struct gopclntab *table; /* borrowed */
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	bool framed; /* compiled functions always have a frame when they make a call */
	struct gopclntab_runs runs; /* of the current function */
};

/*
 * Whether the kernel makes signal handlers return to FUNCTION. Its first instruction is then a
 * return address without a call before it.
 */
bool go_unwind_ends_signal(
	const struct gopclntab *table, const struct gopclntab_function *function);

void go_unwind_init(struct go_unwind *g, const struct gopclntab *table);
void go_unwind_deinit(struct go_unwind *g);

typedef void go_unwind_sink(
	void *context, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule);
/* Passes the rows of F to SINK, ascending; none if F has no pcsp (C code). -EBADMSG or -ENOMEM. */
int go_unwind_function(struct go_unwind *g, const struct gopclntab_function *f,
	go_unwind_sink *sink, void *context);
/* Returns the rule that is mostly valid at F's first instruction. */
struct abi_unwind_rule go_unwind_entry_rule(
	const struct go_unwind *g, const struct gopclntab_function *f);

/* The functions of IMAGE's pclntab as an unwind source. -ENOENT if it has none, or -ENOMEM. */
int go_open_unwind(struct elf_image *image, struct unwind_source *ret_source);
