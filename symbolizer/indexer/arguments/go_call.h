/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How Go passes arguments and results, where DWARF does not say it (cmd/compile/abi-internal.md).
 */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/arguments/place.h"
#include "symbolizer/indexer/arguments/types.h"

/* A call, of which one value after the other is asked for. */
struct go_call {
	bool in_registers; /* since Go 1.17 */
	uint32_t integers, floats; /* registers that are taken */
	uint32_t stack; /* bytes that are taken */
};

/* Where the next value is; results come after go_call_begin_results(). */
void go_call_place(struct go_call *call, struct type *type, struct place *ret_place);
void go_call_begin_results(struct go_call *call);
