/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GCC makes such a function a copy with a name of its own (ipa-sra: `.isra`, ipa-split: `.part`,
 * ipa-cp: `.constprop`), in the symbol table only. LLVM changes functions in place; since 16 it
 * says so (DW_CC_nocall), and before that only those that nobody else can call can have changed.
 */
#include "symbolizer/indexer/arguments/compiler.h"

#include <dwarf.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

enum {
	LLVM_MARKS_CHANGED = 16,
	LLVM_MARKS_OPTIMIZED = 9,
	RUST_HAS_LLVM_16 = 70, /* rustc 1.70 */
};

void compiler_of_unit(Dwarf_Die *unit, struct compiler *ret_compiler)
{
	Dwarf_Attribute attribute;
	const char *producer = NULL, *version;
	unsigned int major = 0, minor = 0;

	*ret_compiler = (struct compiler){ .kind = COMPILER_OTHER };
	if (dwarf_attr(unit, DW_AT_producer, &attribute))
		producer = dwarf_formstring(&attribute);
	if (!producer)
		return;
	if (!strncmp(producer, "GNU ", 4))
		ret_compiler->kind = COMPILER_GNU;
	version = strstr(producer, "rustc version ");
	if (version && sscanf(version, "rustc version %u.%u", &major, &minor) == 2) {
		ret_compiler->kind = COMPILER_LLVM;
		ret_compiler->marks_changed = major > 1 || minor >= RUST_HAS_LLVM_16;
		return;
	}
	version = strstr(producer, "clang version ");
	if (version && sscanf(version, "clang version %u", &major) == 1) {
		ret_compiler->kind = COMPILER_LLVM;
		ret_compiler->marks_changed = major >= LLVM_MARKS_CHANGED;
		ret_compiler->marks_optimized = major >= LLVM_MARKS_OPTIMIZED;
	}
}

uint8_t compiler_symbol(const char *name, unsigned int binding)
{
	uint8_t flags = SYMBOL_KNOWN;

	if (binding != STB_LOCAL)
		flags |= SYMBOL_GLOBAL;
	if (strstr(name, ".isra.") || strstr(name, ".part."))
		flags |= SYMBOL_WITHOUT_RESULT | SYMBOL_SPECIAL;
	if (strstr(name, ".constprop."))
		flags |= SYMBOL_SPECIAL;
	return flags;
}

static bool compiler_says_changed(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	Dwarf_Word convention;

	return dwarf_attr_integrate(function, DW_AT_calling_convention, &attribute) &&
	       (dwarf_formudata(&attribute, &convention) || convention != DW_CC_normal);
}

/* DWARF 5, and its GNU form. */
static bool compiler_says_optimized(Dwarf_Die *function)
{
	return dwarf_hasattr_integrate(function, DW_AT_call_all_calls) ||
	       dwarf_hasattr_integrate(function, DW_AT_GNU_all_call_sites);
}

static bool compiler_keeps(
	const struct compiler *c, Dwarf_Die *function, uint8_t symbol, uint8_t copies)
{
	if (compiler_says_changed(function) || symbol & copies)
		return false;
	switch (c->kind) {
	case COMPILER_GNU:
		return symbol & SYMBOL_KNOWN;
	case COMPILER_LLVM:
		return symbol & SYMBOL_GLOBAL || c->marks_changed ||
		       (c->marks_optimized && !compiler_says_optimized(function));
	default:
		return symbol & SYMBOL_GLOBAL;
	}
}

bool compiler_keeps_result(const struct compiler *c, Dwarf_Die *function, uint8_t symbol)
{
	return compiler_keeps(c, function, symbol, SYMBOL_WITHOUT_RESULT);
}

bool compiler_keeps_parameters(const struct compiler *c, Dwarf_Die *function, uint8_t symbol)
{
	return compiler_keeps(c, function, symbol, SYMBOL_SPECIAL);
}
