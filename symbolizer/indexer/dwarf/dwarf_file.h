/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The DWARF of one file: its sections, its units, and what is kept between units. Units are few
 * words each; entries are never kept, only walked over.
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

/* An executable stretch of ELF addresses: what starts outside all of them is no code. */
struct dwarf_code {
	uint64_t low, high;
};

struct dwarf_sections {
	struct cursor info, abbrev, str, line_str, str_offsets, line, ranges, rnglists, addr;
	const struct dwarf_code *code;
	size_t code_count;
	const struct elf_image *image; /* which the bytes are of; may be NULL */
	/*
	 * Of the supplementary file (DWARF 5, 7.3.6; dwz's .gnu_debugaltlink): entries and strings
	 * that several programs share, and no code. NULL = none.
	 */
	const struct dwarf_sections *alternate;
	/* Files with units of which this one has the skeletons (dwarf_split.h). */
	const struct dwarf_split_source *splits;
	size_t split_count;
};

/* A .dwo file or a package of them (.dwp), its sections under the names without `.dwo`. */
struct dwarf_split_source {
	struct dwarf_sections sections; /* .debug_addr, .debug_ranges and code are the program's */
	struct cursor cu_index; /* .debug_cu_index; empty: no package */
};

struct dwarf_unit {
	struct dwarf_format format;
	uint64_t end; /* offset after the unit */
	uint64_t root; /* offset of its first entry */
	uint64_t abbrev_off; /* of its table in .debug_abbrev */
	/* From the root entry, once `opened`: */
	uint64_t low_pc; /* base of its range lists */
	uint64_t line_off; /* of its line program, when has_lines */
	uint64_t str_offsets_base, addr_base, rnglists_base;
	const char *name; /* "" when there is none; inside a section */
	const char *comp_dir; /* likewise */
	uint16_t language; /* DW_LANG_*, 0 = not said */
	bool has_lines, opened;
	/* Split DWARF: a unit and its skeleton bear the same ID. */
	uint64_t dwo_id;
	const char *dwo_name; /* of a skeleton: its file, below comp_dir; "" when there is none */
	uint64_t split_ranges_base; /* of a skeleton, for its unit's .debug_ranges (GNU) */
	uint64_t ranges_base; /* what offsets of range lists count from; 0 but in a split unit */
	bool has_dwo_id;
	bool is_split; /* its bases and addresses are set by who joins it to its skeleton */
	bool elsewhere; /* a skeleton whose unit has been found: that one is walked */
};

struct dwarf {
	struct dwarf_sections sections;
	struct dwarf_unit *units; /* by offset; type units are not among them */
	size_t unit_count, unit_capacity;
	uint32_t broken_units; /* whose header made no sense */
	struct dwarf_abbrev_cache abbrevs;
};

/* Reads the unit headers. -EBADMSG is never returned: a broken header is counted. */
int dwarf_init(struct dwarf *d, const struct dwarf_sections *sections);
void dwarf_deinit(struct dwarf *d);

/* Reads the root entry of a unit (once). -EBADMSG, -ENOMEM. */
int dwarf_unit_open(struct dwarf *d, struct dwarf_unit *u);
/* The unit that covers OFFSET of .debug_info, NULL when there is none. */
struct dwarf_unit *dwarf_unit_at(struct dwarf *d, uint64_t offset);
/* A cursor over a unit, standing at OFFSET of .debug_info and ending with the unit. */
struct cursor dwarf_unit_cursor(const struct dwarf *d, const struct dwarf_unit *u, uint64_t offset);
/* No namespaces, and no functions inside types. */
bool dwarf_unit_is_flat(const struct dwarf_unit *u);

/* The string of a value, NULL when it has none that is known. */
const char *dwarf_text(
	const struct dwarf *d, const struct dwarf_unit *u, const struct dwarf_value *value);
/* The address of a value (an address or an index of one). */
bool dwarf_address(const struct dwarf *d, const struct dwarf_unit *u,
	const struct dwarf_value *value, uint64_t *ret_address);
/* Entry INDEX of .debug_addr. */
bool dwarf_indexed_address(
	const struct dwarf *d, const struct dwarf_unit *u, uint64_t index, uint64_t *ret_address);
bool dwarf_is_code(const struct dwarf *d, uint64_t address);
/*
 * SECTION has been read up to offset READ: gives the memory of what lies before back to the kernel
 * now and then. *FORGOTTEN, 0 at first, is how far that went. What is asked for again comes back.
 */
void dwarf_forget(
	const struct dwarf *d, const struct cursor *section, uint64_t read, uint64_t *forgotten);
