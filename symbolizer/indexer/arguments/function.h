/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The plans of one function, from its DIE. */
#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "symbolizer/indexer/arguments/compiler.h"
#include "symbolizer/indexer/arguments/values.h"

enum function_language { FUNCTION_OTHER, FUNCTION_C, FUNCTION_GO, FUNCTION_RUST };

struct function_file {
	uint64_t types, types_end; /* as in struct values */
	enum function_language language; /* of the unit */
	bool is_cxx; /* of FUNCTION_C: not C */
	struct compiler compiler;
	bool go_in_registers; /* Go's calls since 1.17 */
	bool go_places; /* what DWARF says of places in Go functions is right: since Go 1.18 */
	bool go_results; /* it has all results: not Go 1.17 */
	bool old_go_names; /* ARGUMENT_PLAN_OLD_GO_NAMES */
};

struct function {
	Dwarf_Die die;
	uint64_t entry;
	uint8_t symbol; /* enum compiler_symbol */
};

/* Sets FILE's language and what depends on it from UNIT. */
void function_file_set_unit(struct function_file *file, Dwarf_Die *unit);
/* Makes V's arguments those that F has at its entry. */
void function_entry(const struct function_file *file, struct function *f, struct values *v);
/* Makes V's arguments the results that it returns. */
void function_results(const struct function_file *file, struct function *f, struct values *v);
