/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A value's place and type, as fetches and arguments of a plan. */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/arguments/argument_plan.h"
#include "symbolizer/indexer/arguments/place.h"
#include "symbolizer/indexer/arguments/types.h"

struct values {
	struct argument_builder builder;
	bool is_go;
	/* Go's type data (runtime.types), ELF addresses; the end is 0 if it is not known. */
	uint64_t types, types_end;
	uint64_t entry; /* of the function */
};

/* Adds NAMED, a parameter or NULL (the function's own result), whose TYPE was read from TYPED. */
void values_add(struct values *v, const char *name, Dwarf_Die *typed, struct type *type,
	const struct place *place);
