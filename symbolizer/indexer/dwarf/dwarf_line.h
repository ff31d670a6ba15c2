/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Line tables (DWARF 5, 6.2), versions 2 to 5: the file names, used by the rows and by the call
 * sites of inlined functions, and the program that generates the rows.
 */
#include "symbolizer/indexer/dwarf/dwarf_file.h"

struct dwarf_line_file {
	const char *name; /* NULL = unknown */
	uint64_t directory; /* number, counted as in the table's version */
	uint32_t string; /* the writer's number of the full path; WRITER_NONE = not added yet */
};

struct dwarf_lines {
	/* The arrays' memory is reused from unit to unit. */
	const char **directories;
	size_t directory_count, directory_capacity;
	struct dwarf_line_file *files;
	size_t file_count, file_capacity;

	/* Of the unit that the table was opened for. */
	const char *comp_dir;
	uint64_t line_off, str_offsets_base;
	bool is_open; /* and still as the header has it */

	struct cursor program;
	uint8_t version;
	uint8_t min_instruction_size, line_range, opcode_base;
	int8_t line_base;
	uint8_t operand_counts[256]; /* of standard opcodes */
};

void dwarf_lines_init(struct dwarf_lines *l);
void dwarf_lines_deinit(struct dwarf_lines *l);
/*
 * Reads the header of U's table, unless it is open. Returns -EBADMSG, also once D's work is spent,
 * or -ENOMEM; there are no files then.
 */
int dwarf_lines_open(struct dwarf_lines *l, const struct dwarf *d, const struct dwarf_unit *u);
/* Forgets the table: there are no files. */
void dwarf_lines_close(struct dwarf_lines *l);
/* Adds a file to the table. Returns -EBADMSG over the limit, or -ENOMEM. */
int dwarf_lines_add_file(struct dwarf_lines *l, const char *name, uint64_t directory);
/* Gets the path of file FILE, numbered as in the table's version; string 0 if there is none. */
int dwarf_lines_path(
	struct dwarf_lines *l, struct index_writer *w, uint64_t file, uint32_t *ret_string);
/* Runs the program of an open table. On an error the rows before it have been written. */
int dwarf_lines_run(
	struct dwarf_lines *l, const struct dwarf *d, uint32_t unit, struct index_writer *w);
