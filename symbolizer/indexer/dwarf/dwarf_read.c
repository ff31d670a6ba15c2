/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_read.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/dwarf/dwarf_asked.h"
#include "symbolizer/indexer/dwarf/dwarf_split.h"
#include "symbolizer/indexer/dwarf/dwarf_walk.h"
#include "symbolizer/indexer/elf/images.h"
#include "symbolizer/indexer/dwarf/dwarf.h"

enum { MAX_LINE_TABLES = 1 << 19 };

struct reader {
	struct dwarf d;
	struct dwarf_names names;
	struct dwarf alternate; /* the supplementary file: not walked, only for name lookups */
	struct dwarf_names alternate_names;
	struct dwarf_lines lines;
	struct dwarf_walker walker;
	struct index_writer *w;
	/*
	 * Offset of a line program → unit number of its rows. Units that share a program share the
	 * number, which links functions to lines.
	 */
	struct map line_owners;
	bool *asked; /* by unit: whether it is read; NULL = all are */
	struct dwarf_split *splits;
	size_t split_count;
	uint64_t forgotten_info, forgotten_lines; /* offsets up to which memory was returned */
	uint32_t skip_language; /* DW_LANG_*; 0 = none */
	uint32_t broken;
};

static int reader_init(
	struct reader *r, const struct dwarf_sections *sections, struct index_writer *w)
{
	struct work *work = writer_work(w);
	int err = dwarf_init(&r->d, sections, work);

	if (!err && sections->alternate)
		err = dwarf_init(&r->alternate, sections->alternate, work);
	dwarf_names_init(&r->alternate_names, &r->alternate, w);
	r->w = w;
	r->broken = r->d.broken_units;
	map_init(&r->line_owners, MAX_LINE_TABLES);
	dwarf_lines_init(&r->lines);
	dwarf_names_init(&r->names, &r->d, w);
	r->names.alternate = sections->alternate ? &r->alternate_names : NULL;
	r->walker =
		(struct dwarf_walker){ .d = &r->d, .w = w, .names = &r->names, .lines = &r->lines };
	return err;
}

static void dwarf_read_reader_deinit(struct reader *r)
{
	for (size_t i = 0; i < r->split_count; i++)
		dwarf_split_deinit(&r->splits[i]);
	free(r->splits);
	free(r->asked);
	dwarf_walker_deinit(&r->walker);
	dwarf_names_deinit(&r->names);
	dwarf_lines_deinit(&r->lines);
	map_deinit(&r->line_owners);
	dwarf_names_deinit(&r->alternate_names);
	dwarf_deinit(&r->alternate);
	dwarf_deinit(&r->d);
}

/* Gets the number of U, and whether it is the first unit with its line program. */
static int number_unit(
	struct reader *r, const struct dwarf_unit *u, uint32_t *ret_number, bool *ret_first)
{
	uint64_t number = (uint64_t)(u - r->d.units);

	*ret_first = u->has_lines && !map_get(&r->line_owners, u->line_off, &number);
	*ret_number = (uint32_t)number;
	return *ret_first ? map_set(&r->line_owners, u->line_off, number) : 0;
}

/* A malformed line table loses only the lines, malformed entries only the functions. */
static int read_unit(struct reader *r, struct dwarf_unit *u)
{
	uint32_t number;
	bool first;
	int err = dwarf_unit_open(&r->d, u), lines_err = 0;

	if (err || (r->skip_language && u->language == r->skip_language))
		return err;
	err = number_unit(r, u, &number, &first);
	if (err)
		return err;
	if (u->has_lines)
		lines_err = dwarf_lines_open(&r->lines, &r->d, u);
	else
		dwarf_lines_close(&r->lines);
	err = u->elsewhere ? 0 : dwarf_walk(&r->walker, u, number);
	if (err && err != -EBADMSG)
		return err;
	if (!lines_err && first)
		lines_err = dwarf_lines_run(&r->lines, &r->d, number, r->w);
	return lines_err ? lines_err : err;
}

static bool reader_is_asked(const struct reader *r, size_t unit)
{
	return !r->asked || r->asked[unit];
}

static void forget_unit(struct reader *r, const struct dwarf_unit *u)
{
	const struct dwarf_sections *s = &r->d.sections;

	dwarf_forget(&r->d, &s->info, u->end, &r->forgotten_info);
	if (u->has_lines && u->line_off < cursor_left(&s->line))
		dwarf_forget(&r->d, &s->line, u->line_off, &r->forgotten_lines);
}

/* ---- split units ---------------------------------------------------------------------------- */

static int dwarf_read_open_split(
	struct reader *r, const struct dwarf_split_source *source, struct map *ids)
{
	struct dwarf_split *s = &r->splits[r->split_count++];
	int err = dwarf_split_open(s, source, &r->d, ids);

	dwarf_names_init(&s->names, &s->d, r->w);
	s->walker = (struct dwarf_walker){
		.d = &s->d, .w = r->w, .names = &s->names, .lines = &r->lines
	};
	return err;
}

static int open_splits(struct reader *r, const struct dwarf_sections *sections)
{
	autocall(map_deinit) struct map ids;
	int err;

	map_init(&ids, MAX_LINE_TABLES);
	if (!sections->split_count)
		return 0;
	r->splits = calloc(sections->split_count, sizeof(*r->splits));
	if (!r->splits)
		return -ENOMEM;
	err = dwarf_split_ids(&r->d, &ids);
	for (size_t i = 0; i < sections->split_count && !err; i++)
		err = dwarf_read_open_split(r, &sections->splits[i], &ids);
	return err;
}

/* File numbers of call sites refer to the skeleton's line table. */
static int read_split_unit(struct reader *r, struct dwarf_split *s, size_t i)
{
	struct dwarf_unit *skeleton = &r->d.units[s->skeletons[i]];
	uint64_t number = s->skeletons[i];

	if (!skeleton->has_lines) {
		dwarf_lines_close(&r->lines);
	} else {
		int err = dwarf_lines_open(&r->lines, &r->d, skeleton);

		if (err && err != -EBADMSG)
			return err;
		map_get(&r->line_owners, skeleton->line_off, &number);
	}
	return dwarf_walk(&s->walker, &s->d.units[i], (uint32_t)number);
}

static int read_splits(struct reader *r)
{
	for (size_t k = 0; k < r->split_count; k++) {
		struct dwarf_split *s = &r->splits[k];

		for (size_t i = 0; i < s->d.unit_count; i++) {
			int err = 0;

			if (s->skeletons[i] != DWARF_NO_SKELETON &&
				reader_is_asked(r, s->skeletons[i]))
				err = read_split_unit(r, s, i);
			if (err && err != -EBADMSG)
				return err;
			r->broken += err == -EBADMSG;
		}
	}
	return 0;
}

enum { MAX_PATH_BYTES = 4096 };

/* Records the path of the .dwo file of a skeleton whose split unit was not found. */
static int note_wanted(struct reader *r, const struct dwarf_unit *u)
{
	bool whole = u->dwo_name[0] == '/' || !*u->comp_dir;
	char path[MAX_PATH_BYTES];
	uint32_t string;
	int length = snprintf(path, sizeof(path), "%s%s%s", whole ? "" : u->comp_dir,
		whole ? "" : "/", u->dwo_name);
	int err;

	if (length <= 0 || (size_t)length >= sizeof(path))
		return 0;
	err = writer_string(r->w, path, (size_t)length, &string);
	return err ? err : writer_wanted(r->w, string);
}

static int note_all_wanted(struct reader *r)
{
	int err = 0;

	for (size_t i = 0; i < r->d.unit_count && !err; i++) {
		const struct dwarf_unit *u = &r->d.units[i];

		if (u->opened && u->has_dwo_id && !u->elsewhere && *u->dwo_name)
			err = note_wanted(r, u);
	}
	return err;
}

static uint64_t all_bytes_of(const struct dwarf_sections *sections)
{
	uint64_t bytes = dwarf_sections_bytes(sections);

	if (sections->alternate)
		bytes += dwarf_sections_bytes(sections->alternate);
	for (size_t i = 0; i < sections->split_count; i++)
		bytes += dwarf_sections_bytes(&sections->splits[i].sections);
	return bytes;
}

int dwarf_read_sections(const struct dwarf_sections *sections, uint32_t skip_language,
	struct index_writer *w, uint32_t *ret_units, uint32_t *ret_broken_units)
{
	autocall(dwarf_read_reader_deinit) struct reader r = { .skip_language = skip_language };
	int err;

	writer_allow(w, all_bytes_of(sections));
	err = reader_init(&r, sections, w);
	if (!err)
		err = open_splits(&r, sections);
	if (!err && writer_asks(w))
		err = dwarf_asked_units(&r.d, w, &r.asked);
	for (size_t i = 0; i < r.d.unit_count && !err; i++) {
		if (reader_is_asked(&r, i))
			err = read_unit(&r, &r.d.units[i]);
		if (err == -EBADMSG) {
			r.broken++;
			err = 0;
		}
		forget_unit(&r, &r.d.units[i]);
	}
	if (!err)
		err = read_splits(&r);
	if (!err)
		err = note_all_wanted(&r);
	if (err)
		return err;
	*ret_units = (uint32_t)r.d.unit_count;
	*ret_broken_units = r.broken;
	return 0;
}

static size_t code_sections(struct elf_image *image, struct dwarf_code *code, size_t max)
{
	const uint64_t wanted = SHF_ALLOC | SHF_EXECINSTR;
	size_t count = 0;

	for (size_t i = 0; i < elf_image_section_count(image) && count < max; i++) {
		struct elf_section s = elf_image_section(image, i);

		if ((s.flags & wanted) == wanted && s.address + s.size > s.address)
			code[count++] = (struct dwarf_code){ s.address, s.address + s.size };
	}
	return count;
}

static size_t code_segments(struct elf_image *image, struct dwarf_code *code, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < elf_image_segment_count(image) && count < max; i++) {
		struct elf_segment s = elf_image_segment(image, i);

		if (s.type == PT_LOAD && (s.flags & PF_X))
			code[count++] = (struct dwarf_code){ s.address, s.address + s.memory_size };
	}
	return count;
}

static size_t dwarf_read_find_code(struct elf_image *image, struct dwarf_code *code, size_t max)
{
	bool relocatable = elf_image_type(image) == ET_REL;
	size_t count = relocatable ? 0 : code_sections(image, code, max);

	return count ? count : code_segments(image, code, max);
}

void dwarf_sections_find(struct elf_image *image, struct dwarf_code *code, size_t max_code,
	struct dwarf_sections *ret_sections)
{
	*ret_sections = (struct dwarf_sections){
		.info = elf_image_bytes(image, ".debug_info"),
		.abbrev = elf_image_bytes(image, ".debug_abbrev"),
		.str = elf_image_bytes(image, ".debug_str"),
		.line_str = elf_image_bytes(image, ".debug_line_str"),
		.str_offsets = elf_image_bytes(image, ".debug_str_offsets"),
		.line = elf_image_bytes(image, ".debug_line"),
		.ranges = elf_image_bytes(image, ".debug_ranges"),
		.rnglists = elf_image_bytes(image, ".debug_rnglists"),
		.addr = elf_image_bytes(image, ".debug_addr"),
		.code = code,
		.code_count = dwarf_read_find_code(image, code, max_code),
		.image = image,
	};
}

int dwarf_read(struct elf_image *image, uint32_t skip_language, struct index_writer *w,
	uint32_t *ret_units, uint32_t *ret_broken_units)
{
	struct dwarf_code code[DWARF_MAX_CODE];
	struct dwarf_sections sections;

	dwarf_sections_find(image, code, DWARF_MAX_CODE, &sections);
	return dwarf_read_sections(&sections, skip_language, w, ret_units, ret_broken_units);
}

static void find_split_sections(struct elf_image *image, const struct dwarf_sections *program,
	struct dwarf_split_source *ret_source)
{
	*ret_source = (struct dwarf_split_source){
		.sections = {
			.info = elf_image_bytes(image, ".debug_info.dwo"),
			.abbrev = elf_image_bytes(image, ".debug_abbrev.dwo"),
			.str = elf_image_bytes(image, ".debug_str.dwo"),
			.line_str = program->line_str,
			.str_offsets = elf_image_bytes(image, ".debug_str_offsets.dwo"),
			.line = program->line,
			.ranges = program->ranges,
			.rnglists = elf_image_bytes(image, ".debug_rnglists.dwo"),
			.addr = program->addr,
			.code = program->code,
			.code_count = program->code_count,
			.image = image,
		},
		.cu_index = elf_image_bytes(image, ".debug_cu_index"),
	};
}

int dwarf_read_images(const struct images *images, uint32_t skip_language, struct index_writer *w,
	uint32_t *ret_units, uint32_t *ret_broken_units)
{
	struct dwarf_split_source splits[DEBUG_FILES_MAX];
	struct dwarf_sections sections, alternate;
	struct dwarf_code code[DWARF_MAX_CODE];

	dwarf_sections_find(images_dwarf(images), code, DWARF_MAX_CODE, &sections);
	if (writer_asks(w))
		sections.aranges = elf_image_bytes(images_dwarf(images), ".debug_aranges");
	/* Executable ranges come from the module's own file, not its debug file. */
	sections.code_count = dwarf_read_find_code(images->own, code, DWARF_MAX_CODE);
	if (images->alternate) {
		dwarf_sections_find(images->alternate, NULL, 0, &alternate);
		sections.alternate = &alternate;
	}
	for (size_t i = 0; i < images->split_count; i++)
		find_split_sections(images->splits[i], &sections, &splits[i]);
	sections.splits = splits;
	sections.split_count = images->split_count;
	return dwarf_read_sections(&sections, skip_language, w, ret_units, ret_broken_units);
}
