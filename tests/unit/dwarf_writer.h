/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes DWARF for the tests, byte by byte. Each entry gets an abbreviation of its own, made of the
 * attributes it is given; sections may be changed by hand before the file is made.
 *
 *	dwarf_writer_unit(&w, 5);
 *	DIE(&w, DW_TAG_compile_unit, true, TEXT(DW_AT_name, "a.c"));
 *	leaf = DIE(&w, DW_TAG_subprogram, false, TEXT(DW_AT_name, "leaf"));
 *	dwarf_writer_up(&w);
 *	dwarf_writer_unit_end(&w);
 */
#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "symbolizer/index/index.h"

struct dwarf_writer {
	struct buffer info, abbrev, str, line_str, str_offsets, line, ranges, rnglists, addr;
	unsigned int version;
	bool wide; /* 64-bit DWARF from the next unit or line table on */
	uint64_t unit; /* offset of the unit's header in .debug_info */
	uint64_t next_code;
	uint64_t last_value; /* offset in .debug_info of the last attribute's value */
};

struct dwarf_spec {
	uint16_t name, form;
	uint64_t number; /* for local references, the offset in .debug_info */
	const char *text;
};

#define NUMBER(name_, form_, value) ((struct dwarf_spec){ (name_), (form_), (uint64_t)(value), "" })
#define TEXT(name_, value) ((struct dwarf_spec){ (name_), DW_FORM_string, 0, (value) })
#define LINE(name_, value) NUMBER(name_, DW_FORM_udata, value)
#define LOW(value) NUMBER(DW_AT_low_pc, DW_FORM_addr, value)
#define SIZE(value) NUMBER(DW_AT_high_pc, DW_FORM_data4, value)
#define ORIGIN(value) NUMBER(DW_AT_abstract_origin, DW_FORM_ref4, value)
#define DIE(w, tag, children, ...)                                                     \
	dwarf_writer_die(w, tag, children, (const struct dwarf_spec[]){ __VA_ARGS__ }, \
		sizeof((const struct dwarf_spec[]){ __VA_ARGS__ }) / sizeof(struct dwarf_spec))

void dwarf_writer_init(struct dwarf_writer *w);
void dwarf_writer_deinit(struct dwarf_writer *w);
/* Starts a unit of version 2 to 5; entries follow. */
void dwarf_writer_unit(struct dwarf_writer *w, unsigned int version);
/*
 * Like dwarf_writer_unit() for split DWARF 5: DW_UT_skeleton, or DW_UT_split_compile with the ID of
 * its skeleton.
 */
void dwarf_writer_split_unit(struct dwarf_writer *w, uint8_t type, uint64_t id);
void dwarf_writer_unit_end(struct dwarf_writer *w);
/* Writes an entry and its abbreviation; returns its offset in .debug_info. */
uint64_t dwarf_writer_die(struct dwarf_writer *w, uint16_t tag, bool children,
	const struct dwarf_spec *specs, size_t count);
/* Ends a list of children. */
void dwarf_writer_up(struct dwarf_writer *w);
/* Offset of TEXT in .debug_str or .debug_line_str. */
uint64_t dwarf_writer_string(struct buffer *section, const char *text);

/* Appends an unsigned number of 1 to 8 bytes. */
void put_number(struct buffer *b, uint64_t value, unsigned int size);

struct dwarf_file_spec {
	const char *name;
	unsigned int directory;
};
struct dwarf_row_spec {
	uint64_t address;
	unsigned int file, line, column;
	bool end;
};
struct dwarf_lines_spec {
	unsigned int version;
	const char *const *directories; /* NULL-terminated */
	const struct dwarf_file_spec *files; /* ends with a NULL name */
	const struct dwarf_row_spec *rows;
	size_t row_count;
};
/* Returns the table's offset in .debug_line. */
uint64_t dwarf_writer_lines(struct dwarf_writer *w, const struct dwarf_lines_spec *spec);

/* The result of reading a file with these sections and code at [0x1000, 0x3000). */
struct dwarf_result {
	struct index *index;
	int error; /* returned by dwarf_read() */
	uint32_t units, broken;
};
void dwarf_writer_read(struct dwarf_writer *w, bool skip_go, struct dwarf_result *ret_result);
/*
 * Reads the file together with COUNT split DWARF files, whose sections have .dwo names
 * (`.debug_info.dwo`). Does not set `units`.
 */
struct dwarf_split_spec {
	struct dwarf_writer *w;
	const struct buffer *cu_index; /* of a package; NULL = not a package */
};
void dwarf_writer_read_split(struct dwarf_writer *w, const struct dwarf_split_spec *splits,
	size_t count, struct dwarf_result *ret_result);
/* The result of dwarf_member_offset(): an offset or a negative errno. */
int64_t dwarf_writer_member(struct dwarf_writer *w, const char *type, const char *member);
/* Writes the frames at ADDRESS to TEXT, as `name file:line:column < name …`. */
void dwarf_result_frames(
	const struct dwarf_result *result, uint64_t address, char *text, size_t size);
