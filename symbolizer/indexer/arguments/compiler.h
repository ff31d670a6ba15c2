/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a function of C, C++ or Rust is called as its source says. Optimizers take away results
 * that no caller uses and parameters that are always the same, and leave the description as it was.
 */
#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

enum compiler_kind { COMPILER_OTHER, COMPILER_GNU, COMPILER_LLVM };

struct compiler {
	enum compiler_kind kind;
	bool marks_changed; /* functions that are called in another way are DW_CC_nocall */
	bool marks_optimized; /* functions that it has optimized have an attribute for that */
};

/* What symbols say of the function at their address. */
enum compiler_symbol {
	SYMBOL_KNOWN = 1 << 0,
	SYMBOL_GLOBAL = 1 << 1, /* others call it */
	SYMBOL_WITHOUT_RESULT = 1 << 2, /* a copy that may return nothing */
	SYMBOL_SPECIAL = 1 << 3, /* a copy that may have other parameters */
};

void compiler_of_unit(Dwarf_Die *unit, struct compiler *ret_compiler);
/* BINDING is STB_LOCAL or another one (ELF). Returns flags of enum compiler_symbol. */
uint8_t compiler_symbol(const char *name, unsigned int binding);
/* SYMBOL: the flags of all symbols at the entry of FUNCTION. */
bool compiler_keeps_result(const struct compiler *c, Dwarf_Die *function, uint8_t symbol);
bool compiler_keeps_parameters(const struct compiler *c, Dwarf_Die *function, uint8_t symbol);
