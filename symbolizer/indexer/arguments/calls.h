/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How languages pass arguments and results where DWARF does not say it. */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/arguments/place.h"
#include "symbolizer/indexer/arguments/types.h"

/* Go's calls, of which one value after the other is asked for (cmd/compile/abi-internal.md). */
struct go_call {
	bool in_registers; /* since Go 1.17 */
	uint32_t integers, floats; /* registers that are taken */
	uint32_t stack; /* bytes that are taken */
};

/* Where the next value is; results come after go_call_begin_results(). */
void go_call_place(struct go_call *call, struct type *type, struct place *ret_place);
void go_call_begin_results(struct go_call *call);

/*
 * The integer registers of C's and C++'s calls. Only what is certain: the rest of a call is unknown
 * after a value whose passing depends on more than its size.
 */
struct c_call {
	uint32_t integers;
	bool is_unknown;
};

void c_call_begin(struct c_call *call, bool returns_in_registers);
/* TYPE may be NULL: not known. */
void c_call_place(struct c_call *call, struct type *type, struct place *ret_place);
/* Where a scalar or a pair is returned. */
void c_call_result(struct type *type, struct place *ret_place);
/* Whether it is an address and a length, which are passed and returned as two: &str. */
bool c_call_is_pair(struct type *type);
/* Whether it is an integer or an address that fits into a register. */
bool c_call_is_integer(const struct type *type);
