/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the pclntab and its module data.
 *
 * The pclntab is a section (.gopclntab, in position-independent files .data.rel.ro.gopclntab);
 * without section headers we search the loaded segments for its header. The header is not enough:
 * since 1.18 entries are offsets from runtime.text and inline trees are offsets from go.func.*.
 * Both addresses are in runtime.firstmoduledata. The text address was also in the header, but an
 * external linker's runtime.text is not the start of .text, the field needs a relocation, and 1.26
 * leaves it 0. So we look for the module data: in the section .go.module (1.26), else in the words
 * of the writable segments (relocated, because position-independent files have only the addend). It
 * starts with the pclntab's address, and is accepted if its table addresses match the header and
 * its entry count is the number of functions + 1.
 *
 * Go 1.27 moved go.func.* within the module data without changing the pclntab's magic number. So a
 * word is accepted as go.func.* only if it leads to plausible inline trees, and runtime.text only
 * if the functions then start and end where the module data says.
 */
#include <errno.h>
#include <elf.h>

#include "symbolizer/indexer/go/gopclntab.h"

enum {
	MAX_FUNCTIONS = 1 << 23,
	MAX_SCAN_BYTES = 1 << 28, /* of a segment, to find a header or module data */
	HEADER_BYTES = 72,
	MODULE_BYTES = 352, /* the part of the module data that is read */
	MAX_TREES_TRIED = 256,
};

/* Offsets in runtime.moduledata; unchanged since 1.16 except the last three. */
enum {
	MODULE_NAMES = 8,
	MODULE_FUNCTIONS = 104,
	MODULE_ENTRIES = 136, /* length of ftab */
	MODULE_MIN_PC = 160,
	MODULE_MAX_PC = 168,
	MODULE_TEXT = 176,
	MODULE_FUNCDATA_1_18 = 304,
	MODULE_FUNCDATA_1_20 = 320,
	MODULE_FUNCDATA_1_27 = 344,
};

struct header {
	enum gopclntab_format format;
	uint32_t quantum;
	uint64_t functions;
	uint64_t text; /* 1.18 to 1.25; else 0 */
	uint64_t names_off, units_off, files_off, pctab_off, functions_off;
};

static bool format_of(uint32_t magic, enum gopclntab_format *ret_format)
{
	switch (magic) {
	case 0xfffffffa:
		*ret_format = GOPCLNTAB_1_16;
		return true;
	case 0xfffffff0:
		*ret_format = GOPCLNTAB_1_18;
		return true;
	case 0xfffffff1:
		*ret_format = GOPCLNTAB_1_20;
		return true;
	default:
		return false;
	}
}

/* The tables are in this order; each starts within the bytes. */
static bool offsets_plausible(const struct header *h, size_t bytes)
{
	return h->names_off >= HEADER_BYTES - 8 && h->names_off < h->units_off &&
	       h->units_off <= h->files_off && h->files_off <= h->pctab_off &&
	       h->pctab_off < h->functions_off && h->functions_off < bytes;
}

/* Whether BYTES start with a pclntab's header; *RET_HEADER may be written in any case. */
static bool parse_header(struct cursor bytes, struct header *ret_header)
{
	struct header *h = ret_header;
	uint16_t padding;
	uint8_t pointer_size;

	if (!format_of(cursor_u32(&bytes), &h->format))
		return false;
	padding = cursor_u16(&bytes);
	h->quantum = cursor_u8(&bytes);
	pointer_size = cursor_u8(&bytes);
	if (padding || pointer_size != 8 || (h->quantum != 1 && h->quantum != 4))
		return false;
	h->functions = cursor_u64(&bytes);
	cursor_u64(&bytes); /* files */
	h->text = h->format == GOPCLNTAB_1_16 ? 0 : cursor_u64(&bytes);
	h->names_off = cursor_u64(&bytes);
	h->units_off = cursor_u64(&bytes);
	h->files_off = cursor_u64(&bytes);
	h->pctab_off = cursor_u64(&bytes);
	h->functions_off = cursor_u64(&bytes);
	return !bytes.bad && h->functions && h->functions <= MAX_FUNCTIONS &&
	       offsets_plausible(h, (size_t)(bytes.end - bytes.start));
}

struct place {
	uint64_t address;
	struct cursor bytes; /* starting with the header */
	struct header header;
};

static int gopclntab_find_section(struct elf_image *image, struct place *ret_place)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	struct elf_section section;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!elf_image_find(image, names[i], &section))
			continue;
		ret_place->address = section.address;
		ret_place->bytes = elf_image_section_bytes(image, section.number);
		if (!cursor_left(&ret_place->bytes))
			return -ENOENT; /* a debug file */
		return parse_header(ret_place->bytes, &ret_place->header) ? 0 : -EOPNOTSUPP;
	}
	return -ENOENT;
}

static bool find_in_segment(
	struct elf_image *image, const struct elf_segment *segment, struct place *ret_place)
{
	uint64_t size = segment->file_size < MAX_SCAN_BYTES ? segment->file_size : MAX_SCAN_BYTES;
	struct cursor bytes = elf_image_at(image, segment->address, size);
	uint64_t offset = (8 - segment->address % 8) % 8;
	enum gopclntab_format format;

	if (!cursor_skip(&bytes, offset))
		return false;
	while (cursor_left(&bytes) >= HEADER_BYTES) {
		struct cursor here = bytes;

		offset = cursor_offset(&bytes);
		cursor_skip(&bytes, 8);
		if (!format_of(cursor_u32(&here), &format))
			continue;
		ret_place->address = segment->address + offset;
		ret_place->bytes = elf_image_from(image, ret_place->address);
		if (parse_header(ret_place->bytes, &ret_place->header))
			return true;
	}
	return false;
}

/*
 * Whether to search the segments: if there are no section headers, or if this is a Go program whose
 * pclntab the external linker merged into .data.rel.ro. Files without Go code are not searched.
 */
static bool worth_a_scan(struct elf_image *image)
{
	struct elf_section section;

	return elf_image_section_count(image) <= 1 ||
	       elf_image_find(image, ".go.buildinfo", &section) ||
	       elf_image_find(image, ".note.go.buildid", &section);
}

static int gopclntab_find_place(struct elf_image *image, struct place *ret_place)
{
	int r = gopclntab_find_section(image, ret_place);

	if (r != -ENOENT || !worth_a_scan(image))
		return r;
	for (size_t i = 0; i < elf_image_segment_count(image); i++) {
		struct elf_segment segment = elf_image_segment(image, i);

		if (segment.type == PT_LOAD && find_in_segment(image, &segment, ret_place))
			return 0;
	}
	return -ENOENT;
}

static bool word_is(struct elf_image *image, uint64_t address, uint64_t expected)
{
	uint64_t word;

	return elf_image_word(image, address, &word) && word == expected;
}

static bool is_module(struct elf_image *image, const struct place *place, uint64_t address)
{
	const struct header *h = &place->header;

	return word_is(image, address, place->address) &&
	       word_is(image, address + MODULE_NAMES, place->address + h->names_off) &&
	       word_is(image, address + MODULE_FUNCTIONS, place->address + h->functions_off) &&
	       word_is(image, address + MODULE_ENTRIES, h->functions + 1);
}

/* Searches the segment's words, as in the file or RELOCATED. */
static bool find_module_in(struct elf_image *image, const struct place *place,
	const struct elf_segment *segment, bool relocated, uint64_t *ret_address)
{
	uint64_t size = segment->file_size < MAX_SCAN_BYTES ? segment->file_size : MAX_SCAN_BYTES;
	struct cursor bytes = elf_image_at(image, segment->address, size);

	cursor_skip(&bytes, (8 - segment->address % 8) % 8);
	while (cursor_left(&bytes) >= MODULE_BYTES) {
		uint64_t address = segment->address + cursor_offset(&bytes);
		uint64_t word = cursor_u64(&bytes);

		if (relocated && !word_is(image, address, place->address))
			continue;
		if (!relocated && word != place->address)
			continue;
		if (is_module(image, place, address)) {
			*ret_address = address;
			return true;
		}
	}
	return false;
}

static bool gopclntab_find_module(
	struct elf_image *image, const struct place *place, uint64_t *ret_address)
{
	struct elf_section section;

	if (elf_image_find(image, ".go.module", &section) &&
		is_module(image, place, section.address)) {
		*ret_address = section.address;
		return true;
	}
	for (int relocated = 0; relocated < 2; relocated++) {
		for (size_t i = 0; i < elf_image_segment_count(image); i++) {
			struct elf_segment s = elf_image_segment(image, i);

			if (s.type == PT_LOAD && (s.flags & PF_W) &&
				find_module_in(image, place, &s, relocated, ret_address))
				return true;
		}
	}
	return false;
}

/* Whether T's funcdata is right: nearly all of the first inline trees are plausible. */
static bool funcdata_is_right(const struct gopclntab *t)
{
	unsigned int right = 0, wrong = 0;

	for (uint32_t i = 0; i < t->function_count && right + wrong < MAX_TREES_TRIED; i++) {
		struct gopclntab_function f;

		if (gopclntab_function(t, i, &f) || !f.pcinline || !f.inline_tree)
			continue;
		if (gopclntab_inline_plausible(t, &f))
			right++;
		else
			wrong++;
	}
	return wrong <= right / 16;
}

/* Returns go.func.*; 0 if none of its known offsets in the module data leads to inline trees. */
static uint64_t find_funcdata(const struct gopclntab *table, uint64_t module)
{
	static const uint64_t places_1_18[] = { MODULE_FUNCDATA_1_18 };
	static const uint64_t places_1_20[] = { MODULE_FUNCDATA_1_20, MODULE_FUNCDATA_1_27 };
	bool old = table->format == GOPCLNTAB_1_18;
	const uint64_t *places = old ? places_1_18 : places_1_20;
	size_t count = old ? 1 : sizeof(places_1_20) / sizeof(places_1_20[0]);
	struct gopclntab t = *table;

	for (size_t i = 0; i < count; i++)
		if (elf_image_word(t.image, module + places[i], &t.funcdata) && t.funcdata &&
			funcdata_is_right(&t))
			return t.funcdata;
	return 0;
}

/* The runtime makes the same check at startup: first and last entry match the module data. */
static bool text_is_right(const struct gopclntab *t, uint64_t module)
{
	uint64_t first, last;
	uint32_t record;

	return gopclntab_entry(t, 0, &first, &record) &&
	       gopclntab_entry(t, t->function_count, &last, &record) &&
	       word_is(t->image, module + MODULE_MIN_PC, first) &&
	       word_is(t->image, module + MODULE_MAX_PC, last);
}

/* Gets the base addresses of offsets; without module data falls back on the header's text. */
static int find_bases(struct elf_image *image, const struct place *place, struct gopclntab *t)
{
	uint64_t module;

	t->base = 0;
	t->funcdata = 0;
	if (t->format == GOPCLNTAB_1_16)
		return 0;
	if (!gopclntab_find_module(image, place, &module)) {
		if (!place->header.text || !elf_image_word(image, t->address + 24, &t->base))
			return -EOPNOTSUPP;
		return 0;
	}
	if (!elf_image_word(image, module + MODULE_TEXT, &t->base))
		return -EBADMSG;
	if (!text_is_right(t, module))
		return -EOPNOTSUPP;
	t->funcdata = find_funcdata(t, module);
	return 0;
}

static struct cursor table_at(const struct place *place, uint64_t offset)
{
	uint64_t size = (uint64_t)(place->bytes.end - place->bytes.start);

	return cursor_slice(&place->bytes, offset, size - offset);
}

static struct gopclntab table_of(struct elf_image *image, const struct place *place)
{
	const struct header *h = &place->header;

	return (struct gopclntab){
		.image = image,
		.format = h->format,
		.address = place->address,
		.quantum = h->quantum,
		.function_count = (uint32_t)h->functions,
		.names = table_at(place, h->names_off),
		.units = table_at(place, h->units_off),
		.files = table_at(place, h->files_off),
		.pctab = table_at(place, h->pctab_off),
		.functions = table_at(place, h->functions_off),
		.functions_address = place->address + h->functions_off,
	};
}

/* The functions' range must be in the file, which bounds work that is done per byte of code. */
static int find_text(struct gopclntab *t)
{
	struct cursor code;
	uint32_t record;

	if (!gopclntab_entry(t, 0, &t->text, &record) ||
		!gopclntab_entry(t, t->function_count, &t->text_end, &record) ||
		t->text_end <= t->text)
		return -EBADMSG;
	code = elf_image_at(t->image, t->text, t->text_end - t->text);
	return code.bad ? -EBADMSG : 0;
}

int gopclntab_find(struct elf_image *image, struct gopclntab *ret_table)
{
	struct gopclntab table;
	struct place place;
	int r;

	r = gopclntab_find_place(image, &place);
	if (r)
		return r;
	table = table_of(image, &place);
	r = find_bases(image, &place, &table);
	if (!r)
		r = find_text(&table);
	if (!r)
		*ret_table = table;
	return r;
}
