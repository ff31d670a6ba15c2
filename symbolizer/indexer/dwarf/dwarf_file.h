/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The DWARF of one file: its sections, its units, and state shared by units. A unit takes a few
 * words; entries are only walked over, never stored.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/map.h"
#include "symbolizer/indexer/dwarf/dwarf_abbrev.h"
#include "symbolizer/indexer/dwarf/dwarf_form.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/writer/writer.h"

/* An executable range of ELF addresses. A function that starts outside all of them is discarded. */
struct dwarf_code {
	uint64_t low, high;
};

struct dwarf_sections {
	struct cursor info, abbrev, str, line_str, str_offsets, line, ranges, rnglists, addr;
	struct cursor aranges; /* only if the writer is asked for some addresses */
	const struct dwarf_code *code;
	size_t code_count;
	const struct elf_image *image; /* owner of the bytes; may be NULL */
	/*
	 * Sections of the supplementary file (DWARF 5, 7.3.6; dwz's .gnu_debugaltlink): entries and
	 * strings that several programs share, without code. NULL = none.
	 */
	const struct dwarf_sections *alternate;
	/* Files with the split units of this file's skeletons (dwarf_split.h). */
	const struct dwarf_split_source *splits;
	size_t split_count;
};

/* A .dwo file or a package of them (.dwp). */
struct dwarf_split_source {
	/* The .dwo sections; lines, addresses, .debug_ranges and code are the program's. */
	struct dwarf_sections sections;
	struct cursor cu_index; /* .debug_cu_index; empty: not a package */
};

struct dwarf_unit {
	struct dwarf_format format;
	uint64_t end; /* offset of the unit's end in .debug_info */
	uint64_t root; /* offset of its first entry in .debug_info */
	uint64_t abbrev_off; /* of its table in .debug_abbrev */
	/* From the root entry, once `opened`: */
	uint64_t low_pc; /* base address of its range lists */
	uint64_t line_off; /* of its line program in .debug_line, if has_lines */
	uint64_t str_offsets_base, addr_base, rnglists_base;
	const char *name; /* borrowed from a section; "" = none */
	const char *comp_dir; /* borrowed from a section; "" = none */
	uint16_t language; /* DW_LANG_*; 0 = unknown */
	bool has_lines, opened;
	/* Split DWARF: a unit and its skeleton have the same ID. */
	uint64_t dwo_id;
	const char *dwo_name; /* skeleton: path of the .dwo file, relative to comp_dir; "" = none */
	uint64_t split_ranges_base; /* skeleton: base of its split unit in .debug_ranges (GNU) */
	uint64_t ranges_base; /* added to offsets of range lists; 0 except in split units */
	bool has_dwo_id;
	bool is_split; /* bases and addresses come from the package's index and the skeleton */
	bool elsewhere; /* skeleton: its split unit was found and is walked instead */
};

struct dwarf {
	struct dwarf_sections sections;
	struct dwarf_unit *units; /* sorted by offset; without type units */
	size_t unit_count, unit_capacity;
	uint32_t broken_units; /* with a malformed header */
	struct dwarf_abbrev_cache abbrevs;
	struct work *work; /* borrowed; NULL = not bounded */
};

/*
 * Reads the unit headers. Only returns -ENOMEM: malformed headers are counted. Once WORK is spent,
 * what is left to read counts as malformed.
 */
int dwarf_init(struct dwarf *d, const struct dwarf_sections *sections, struct work *work);
void dwarf_deinit(struct dwarf *d);
/* Size of all sections. */
uint64_t dwarf_sections_bytes(const struct dwarf_sections *sections);

/* Reads the root entry of a unit, unless it is already open. Returns -EBADMSG or -ENOMEM. */
int dwarf_unit_open(struct dwarf *d, struct dwarf_unit *u);
/* Returns the unit that contains OFFSET in .debug_info, or NULL. */
struct dwarf_unit *dwarf_unit_at(struct dwarf *d, uint64_t offset);
/* Returns a cursor over .debug_info, positioned at OFFSET, that ends with the unit. */
struct cursor dwarf_unit_cursor(const struct dwarf *d, const struct dwarf_unit *u, uint64_t offset);
/* Whether the unit's language has neither namespaces nor functions inside types. */
bool dwarf_unit_is_flat(const struct dwarf_unit *u);

/* Returns the string of a value, or NULL. */
const char *dwarf_text(
	const struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *value);
/* Gets the address of a value (an address, or an index into .debug_addr); false if it has none. */
bool dwarf_address(const struct dwarf *d, const struct dwarf_unit *u,
	const struct dwarf_value *value, uint64_t *ret_address);
/* Gets entry INDEX of the unit's part of .debug_addr; false if out of bounds. */
bool dwarf_indexed_address(
	const struct dwarf *d, const struct dwarf_unit *u, uint64_t index, uint64_t *ret_address);
bool dwarf_is_code(const struct dwarf *d, uint64_t address);
/* As elf_image_forget_read(), if the sections are an image's. */
void dwarf_forget(
	const struct dwarf *d, const struct cursor *section, uint64_t read, uint64_t *forgotten);
