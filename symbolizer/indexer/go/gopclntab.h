/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Access to a Go program's pclntab: its location, functions, names, files and pc tables. Only
 * gopclntab.c and gopclntab_inline.c know the index writer. All bytes are untrusted; functions
 * return -EBADMSG for malformed data.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/map.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/writer/writer.h"

/* The format, named by the first Go release that writes it. */
enum gopclntab_format {
	GOPCLNTAB_1_16 = 16, /* absolute addresses, pointers to funcdata */
	GOPCLNTAB_1_18 = 18, /* offsets from runtime.text and from go.func.* */
	GOPCLNTAB_1_20 = 20, /* start lines; the inline tree names the call by its address alone */
};

struct gopclntab {
	struct elf_image *image; /* borrowed */
	enum gopclntab_format format;
	uint64_t address;
	uint32_t quantum; /* bytes of code per step of a pc table: 1, on aarch64 4 */
	uint32_t function_count;
	uint64_t text, text_end; /* [first function, end of the last) */
	uint64_t base; /* runtime.text, which entries are relative to; 0 in 1.16 */
	uint64_t funcdata; /* address of go.func.*; 0 = unknown, or not needed (1.16) */
	struct cursor names, units, files, pctab, functions; /* each up to the pclntab's end */
	uint64_t functions_address;
};

/*
 * Finds the pclntab. Returns -ENOENT if this is not a Go program, -EOPNOTSUPP if the pclntab has an
 * unknown format. The table borrows the image's bytes and needs no deinit.
 */
int gopclntab_find(struct elf_image *image, struct gopclntab *ret_table);

/*
 * Gets the address and the record's offset of entry NUMBER of ftab. Entry function_count is the end
 * of the last function. False if out of bounds.
 */
bool gopclntab_entry(
	const struct gopclntab *table, uint32_t number, uint64_t *ret_entry, uint32_t *ret_record);

enum gopclntab_flags {
	GOPCLNTAB_TOP_FRAME = 1, /* has no caller */
	GOPCLNTAB_WRITES_SP = 2, /* changes the stack pointer in ways that `pcsp` does not have */
	GOPCLNTAB_ASSEMBLY = 4, /* since 1.18 */
};

struct gopclntab_function {
	uint64_t entry;
	uint64_t next; /* the next function's entry; this one ends there or earlier */
	uint32_t name; /* offset into `names` */
	uint32_t start_line; /* 0 = unknown */
	uint32_t pcsp, pcfile, pcln, pcinline; /* offsets into `pctab`; 0 = none */
	uint8_t flags; /* enum gopclntab_flags; none in 1.16 */
	uint32_t unit; /* index into `units` of file number 0 */
	uint64_t inline_tree; /* ELF address; 0 = none */
};
int gopclntab_function(
	const struct gopclntab *table, uint32_t number, struct gopclntab_function *ret_function);
/* Finds the first function named NAME or NAME.abi0 (assembly's entry); -ENOENT if none exists. */
int gopclntab_function_named(
	const struct gopclntab *table, const char *name, struct gopclntab_function *ret_function);

/* Returns NULL if OFFSET is not the start of a name, or if the name is empty or too long. */
const char *gopclntab_name(const struct gopclntab *table, uint32_t offset);
/* Returns the path of FILE of UNIT, NULL if unknown. *RET_KEY identifies the path. */
const char *gopclntab_file(
	const struct gopclntab *table, uint32_t unit, int32_t file, uint32_t *ret_key);

/* A decoded pc table. VALUE is valid from the previous run's END up to END, offsets from entry. */
struct gopclntab_run {
	uint32_t end;
	int32_t value;
};
struct gopclntab_runs {
	struct gopclntab_run *items;
	size_t count, capacity;
};
/* Replaces RUNS with the pc table at OFFSET (0 = none), for at most SIZE bytes of code. */
int gopclntab_runs_read(
	const struct gopclntab *table, uint32_t offset, uint32_t size, struct gopclntab_runs *runs);
void gopclntab_runs_deinit(struct gopclntab_runs *runs);
/* Returns the value at PC bytes after the entry; -1 if there is none. */
int32_t gopclntab_runs_value(const struct gopclntab_runs *runs, uint32_t pc);

/* State of writing functions to the index, one function at a time. */
struct gopclntab_reader {
	const struct gopclntab *table;
	struct index_writer *writer;
	struct map names; /* offset → string numbers: of the linkage name << 32 | of the name */
	struct map files; /* offset → string number */
	struct gopclntab_function function;
	uint32_t size; /* bytes of code of `function` */
	uint64_t code_end; /* of the function before it */
	struct gopclntab_runs file, line, inlined;
	bool calls_unknown; /* broken inline tree: lines at `inlined` are of unknown functions */
	struct gopclntab_inline *inlines; /* of `function` */
	size_t inline_capacity;
};

int gopclntab_reader_name(struct gopclntab_reader *r, uint32_t offset, struct writer_node *node);
/* Gets the file's string number and the line at PC bytes after the entry; both 0 if unknown. */
int gopclntab_reader_line(
	struct gopclntab_reader *r, uint32_t pc, uint32_t *ret_file, uint32_t *ret_line);
/*
 * Reads the inline tree of the reader's function; its pc tables must have been read. Returns
 * -EBADMSG if the tree is malformed or missing: lines in inlined calls are then unusable.
 */
int gopclntab_inline_read(struct gopclntab_reader *r);
/* Writes the inlined calls below ROOT, the node of the reader's function. */
int gopclntab_inline_write(struct gopclntab_reader *r, uint32_t root);
/* Whether FUNCTION's inline tree (it must have one) starts with a valid entry. */
bool gopclntab_inline_plausible(
	const struct gopclntab *table, const struct gopclntab_function *function);
/* Unit number of all Go functions, distinct from those of DWARF units. */
enum { GOPCLNTAB_UNIT = UINT32_MAX - 1 };
