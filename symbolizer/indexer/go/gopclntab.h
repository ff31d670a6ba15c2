/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A Go program's pclntab as its reader (gopclntab.c) and go_facts.c see it: where it is, its
 * functions, names, files and pc tables. Nothing here knows the index writer but gopclntab.c and
 * gopclntab_inline.c. All bytes are foreign; what does not add up is -EBADMSG.
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
	uint32_t quantum; /* bytes that one step of a pc table stands for: 1, on aarch64 4 */
	uint32_t function_count;
	uint64_t text, text_end; /* [first function, end of the last) */
	uint64_t base; /* runtime.text, what entries are relative to; 0 in 1.16 */
	uint64_t funcdata; /* go.func.*; 0 = unknown, or not needed (1.16) */
	struct cursor names, units, files, pctab, functions; /* each from its start to the end */
	uint64_t functions_address;
};

/*
 * -ENOENT: no Go program. -EOPNOTSUPP: a pclntab that this reader does not know. The table
 * borrows the image's bytes and needs no deinit.
 */
int gopclntab_find(struct elf_image *image, struct gopclntab *ret_table);

/* Entry NUMBER of ftab, up to function_count (there: the end of the last), and its record's place.
 */
bool gopclntab_entry(
	const struct gopclntab *table, uint32_t number, uint64_t *ret_entry, uint32_t *ret_record);

enum gopclntab_flags {
	GOPCLNTAB_TOP_FRAME = 1, /* nothing called it */
	GOPCLNTAB_WRITES_SP = 2, /* in a way that `pcsp` does not tell */
	GOPCLNTAB_ASSEMBLY = 4, /* since 1.18 */
};

struct gopclntab_function {
	uint64_t entry;
	uint64_t next; /* the next function's entry: this one ends there at the latest */
	uint32_t name; /* offset into `names` */
	uint32_t start_line; /* 0 = unknown */
	uint32_t pcsp, pcfile, pcln, pcinline; /* offsets into `pctab`; 0 = none */
	uint8_t flags; /* enum gopclntab_flags; none in 1.16 */
	uint32_t unit; /* of the file numbers: index into `units` */
	uint64_t inline_tree; /* ELF address; 0 = none */
};
int gopclntab_function(
	const struct gopclntab *table, uint32_t number, struct gopclntab_function *ret_function);
/* The first function called NAME, also with .abi0 behind it (the assembly's own entry). */
int gopclntab_function_named(
	const struct gopclntab *table, const char *name, struct gopclntab_function *ret_function);

/* Never NULL for a name that begins where the linker puts one and is not overlong. */
const char *gopclntab_name(const struct gopclntab *table, uint32_t offset);
/* *RET_KEY is the same for the same text. NULL where FILE (of UNIT) is not known. */
const char *gopclntab_file(
	const struct gopclntab *table, uint32_t unit, int32_t file, uint32_t *ret_key);

/* A pc table, decoded: VALUE holds from the run before up to the offset END from the entry. */
struct gopclntab_run {
	uint32_t end;
	int32_t value;
};
struct gopclntab_runs {
	struct gopclntab_run *items;
	size_t count, capacity;
};
/* Decodes the pc table at OFFSET, at most up to SIZE bytes of code. Replaces what RUNS held. */
int gopclntab_runs_read(
	const struct gopclntab *table, uint32_t offset, uint32_t size, struct gopclntab_runs *runs);
void gopclntab_runs_deinit(struct gopclntab_runs *runs);
/* The value at PC bytes behind the entry; -1 where there is none. */
int32_t gopclntab_runs_value(const struct gopclntab_runs *runs, uint32_t pc);

/* What turning functions into the index takes; one function at a time. */
struct gopclntab_reader {
	const struct gopclntab *table;
	struct index_writer *writer;
	struct map names; /* offset → string number of the linkage name, << 32 that of the name */
	struct map files; /* offset → string number */
	struct gopclntab_function function;
	uint32_t size; /* bytes of code of `function` */
	struct gopclntab_runs file, line, inlined;
	bool calls_unknown; /* the lines at `inlined` are another function's, nobody knows which */
	struct gopclntab_inline *inlines; /* of `function` */
	size_t inline_capacity;
};

int gopclntab_reader_name(struct gopclntab_reader *r, uint32_t offset, struct writer_node *node);
/* String number and line at PC bytes behind the entry; both 0 where one is not known. */
int gopclntab_reader_line(
	struct gopclntab_reader *r, uint32_t pc, uint32_t *ret_file, uint32_t *ret_line);
/*
 * Reads the inline tree of the reader's function, whose pc tables are read already. One that is
 * broken or not found is -EBADMSG: then nobody knows whose lines those in inlined calls are.
 */
int gopclntab_inline_read(struct gopclntab_reader *r);
/* Writes the inlined calls that were read below ROOT, the node of the reader's function. */
int gopclntab_inline_write(struct gopclntab_reader *r, uint32_t root);
/* Whether the tree of FUNCTION, which has one, begins as trees do. */
bool gopclntab_inline_plausible(
	const struct gopclntab *table, const struct gopclntab_function *function);
/* How the writer tells Go's functions from the DWARF reader's compile units. */
enum { GOPCLNTAB_UNIT = UINT32_MAX - 1 };
