/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How C, C++ and Rust pass arguments and results, where DWARF does not say it. Only what is
 * certain: the rest of a call is unknown after a value of which that is not known.
 */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/arguments/place.h"
#include "symbolizer/indexer/arguments/types.h"

/* What is known of the way in which a struct is handed over. */
enum c_passing {
	C_PASSED_SOMEHOW,
	C_PASSED_AS_VALUE,
	C_PASSED_BY_ADDRESS, /* as C++ does if a copy would not be the same */
	C_PASSED_BY_MEMBERS, /* as a value if it has no functions, else somehow: GCC does not say it
			      */
};

struct c_call {
	uint32_t integers, floats; /* registers that are taken */
	bool is_unknown;
};

/* What DW_AT_calling_convention says of TYPE, else OTHERWISE. */
enum c_passing c_passing_of(struct type *type, enum c_passing otherwise);

/* RESULT: the type that is returned, NULL = none. A large struct is an argument: where to put it.
 */
void c_call_begin(struct c_call *call, struct type *result, enum c_passing passing);
/*
 * Where the next argument is: in registers, or its address is. TYPE may be NULL: not known. Nowhere
 * if it is on the stack: Clang describes not all arguments there, so they cannot be counted.
 */
void c_call_place(
	struct c_call *call, struct type *type, enum c_passing passing, struct place *ret_place);
/* Where a result is at the return. */
void c_call_result(struct type *type, enum c_passing passing, struct place *ret_place);
