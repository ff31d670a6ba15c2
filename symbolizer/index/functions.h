/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions of a module: where each one begins, and each instruction with which it returns.
 * Only an index that was requested with functions has them, because finding them means decoding all
 * code (symbolizer/indexer/code). Nothing in the file is trusted: a forged one gives wrong or
 * missing functions, never an access outside of the mapping.
 *
 * A function has one entry here for each name of its address: aliases, local and global symbols,
 * names in DWARF and in a runtime's tables. Parts that a compiler moved away (`f.cold`) belong to
 * their function and are no functions; clones (`f.part.0`, `f.constprop.0`) are, with the suffix in
 * both names. Stubs of the procedure linkage table are none.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/index/index.h"

enum index_function_flags {
	/* Named by a runtime's table: it runs on the stack of a fiber (a goroutine). */
	INDEX_FUNCTION_FIBER = 1 << 0,
	/* All of it was decoded, and no instruction returns: it exits, panics, loops or jumps away.
	 */
	INDEX_FUNCTION_NO_RETURN = 1 << 1,
	/*
	 * A jump, direct or by way of the global offset table, or its last instruction leads into
	 * another function's code.
	 */
	INDEX_FUNCTION_TAIL_JUMP = 1 << 2,
	/* It jumps through a register or memory: a table of a switch, or a tail call. */
	INDEX_FUNCTION_INDIRECT_JUMP = 1 << 3,
	INDEX_FUNCTION_ENTRY_IS_RETURN = 1 << 4,
	/*
	 * It has bytes that are no instruction, a jump into the middle of one, or an unknown end:
	 * what was found cannot be trusted, and no returns are listed.
	 */
	INDEX_FUNCTION_UNDECODED = 1 << 5,
	/* It has an STT_GNU_IFUNC symbol: this is the code of a resolver, which runs once. */
	INDEX_FUNCTION_IFUNC = 1 << 6,
	/*
	 * Only a debug file knows it, which may be forged: the module's own file has no symbol and
	 * no call frame information that begins at its entry. It was not decoded.
	 */
	INDEX_FUNCTION_UNCONFIRMED = 1 << 7,
	/*
	 * Linux's uprobes take the instruction at its entry for another one, or may
	 * (code_instruction.is_misread): a probe there would change what the program does.
	 */
	INDEX_FUNCTION_ENTRY_MISREAD = 1 << 8,
};

/* struct index_function.stack_check: it has no such check, or one that is not recognized. */
static const uint32_t INDEX_NO_STACK_CHECK = UINT32_MAX;

struct index_function {
	const char *name; /* demangled; never "" */
	const char *linkage; /* as in the symbol table; never "" */
	uint64_t address; /* ELF address of the entry */
	uint32_t flags; /* enum index_function_flags */
	uint32_t return_count;
	/*
	 * Go: the prologue calls morestack, and the function begins again, if
	 * sp - stack_check <= g.stackguard0, sp as at the entry. Or INDEX_NO_STACK_CHECK.
	 */
	uint32_t stack_check;
	/* How far behind the entry that call of morestack returns; 0 = not known. */
	uint32_t restart_off;
};

/* False: the index was requested without functions, and says nothing about them. */
bool index_has_functions(const struct index *index);
size_t index_function_count(const struct index *index);
/*
 * Functions are ordered by address. False if NUMBER is too large, or the entry makes no sense. The
 * strings live as long as the index.
 */
bool index_function(const struct index *index, size_t number, struct index_function *ret_function);
/*
 * ELF address of return RETURN_NUMBER of function NUMBER, ascending; 0 if there is none. Names of
 * one function share its returns.
 */
uint64_t index_function_return(const struct index *index, size_t number, size_t return_number);

/* A call that was inlined: its function need not exist anywhere else. */
struct index_inlined {
	const char *name, *linkage; /* of the function that was inlined, as above */
	const char *caller; /* linkage of the function with the code, itself not inlined */
	const char *file; /* of the call; "" = unknown */
	uint32_t line; /* 0 = unknown */
};
/* In an index with or without functions. False if NUMBER is no inlined call; to be skipped then. */
size_t index_inlined_count(const struct index *index);
bool index_inlined(const struct index *index, size_t number, struct index_inlined *ret_inlined);
