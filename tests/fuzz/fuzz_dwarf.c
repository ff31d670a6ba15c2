/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is nine section sizes of 16 bits, then the sections' bytes; missing sections are empty.
 * The seeds are small programs of gcc and clang in this format.
 */
#include <dwarf.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/dwarf/dwarf_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SECTIONS = 9 };

static const struct dwarf_code code[] = { { 0x1000, 0x8000 }, { 0x400000, 0x500000 } };

static const uint64_t asked[] = { 0x1234, 0x401000, 0x401abc };

static struct cursor cut(struct cursor *data, size_t size)
{
	size_t length = MIN(size, cursor_left(data));

	return cursor_over(cursor_bytes(data, length), length);
}

static void split(struct cursor data, struct dwarf_sections *ret_sections)
{
	struct cursor *parts[SECTIONS] = { &ret_sections->info, &ret_sections->abbrev,
		&ret_sections->str, &ret_sections->line_str, &ret_sections->str_offsets,
		&ret_sections->line, &ret_sections->ranges, &ret_sections->rnglists,
		&ret_sections->addr };
	uint16_t sizes[SECTIONS];

	for (size_t i = 0; i < SECTIONS; i++)
		sizes[i] = cursor_u16(&data);
	for (size_t i = 0; i < SECTIONS; i++)
		*parts[i] = cut(&data, sizes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwarf_sections sections = { .code = code, .code_count = ARRAY_SIZE(code) }, same;
	struct dwarf_split_source split_source;
	struct index_writer *w = index_writer_create();
	uint32_t units, broken;
	uint64_t offset;

	if (!w)
		abort();
	split(cursor_over(data, size), &sections);
	/* The file is its own supplementary file. */
	same = sections;
	sections.alternate = size & 4 ? &same : NULL;
	/* It is its own package, too. */
	split_source = (struct dwarf_split_source){ .sections = same };
	if (size & 16)
		split_source.cu_index = same.line_str;
	sections.splits = &split_source;
	sections.split_count = size & 8 ? 1 : 0;
	if (size & 32) {
		sections.aranges = same.ranges;
		writer_ask(w, asked, ARRAY_SIZE(asked));
	}
	dwarf_read_sections(&sections, size % 2 ? DW_LANG_Go : 0, w, &units, &broken);
	dwarf_member_find(&sections, "runtime.g", "goid", &offset);
	index_writer_destroy(w);
	return 0;
}
