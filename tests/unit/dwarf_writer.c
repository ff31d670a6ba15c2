/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/dwarf_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "symbolizer/indexer/builder.h"
#include "symbolizer/indexer/dwarf/dwarf.h"
#include "symbolizer/indexer/writer/writer.h"
#include "tests/unit/bytes.h"
#include "tests/unit/elf_writer.h"

enum { SECTION_LIMIT = 8 << 20, CODE_LOW = 0x1000, CODE_SIZE = 0x2000 };

static void must(bool good)
{
	if (!good)
		abort();
}

void dwarf_writer_init(struct dwarf_writer *w)
{
	struct buffer *sections[] = { &w->info, &w->abbrev, &w->str, &w->line_str, &w->str_offsets,
		&w->line, &w->ranges, &w->rnglists, &w->addr };

	memset(w, 0, sizeof(*w));
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		buffer_init(sections[i], SECTION_LIMIT);
}

void dwarf_writer_deinit(struct dwarf_writer *w)
{
	struct buffer *sections[] = { &w->info, &w->abbrev, &w->str, &w->line_str, &w->str_offsets,
		&w->line, &w->ranges, &w->rnglists, &w->addr };

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		must(!sections[i]->error);
		buffer_deinit(sections[i]);
	}
}

void put_number(struct buffer *b, uint64_t value, unsigned int size)
{
	buffer_append(b, &value, size);
}

static void put_offset(const struct dwarf_writer *w, struct buffer *b, uint64_t value)
{
	put_number(b, value, w->wide ? 8 : 4);
}

/* Room for a length that set_length() fills in. */
static size_t put_length(const struct dwarf_writer *w, struct buffer *b)
{
	if (w->wide)
		put_u32(b, 0xffffffff);
	put_offset(w, b, 0);
	return b->size;
}

static void set_length(const struct dwarf_writer *w, struct buffer *b, size_t start)
{
	if (w->wide)
		set_u64(b, start - 8, b->size - start);
	else
		set_u32(b, start - 4, (uint32_t)(b->size - start));
}

static void begin_unit(struct dwarf_writer *w, unsigned int version, uint8_t type)
{
	w->unit = w->info.size;
	w->version = version;
	w->next_code = 1;
	put_length(w, &w->info);
	put_u16(&w->info, (uint16_t)version);
	if (version >= 5) {
		put_u8(&w->info, type);
		put_u8(&w->info, 8);
	}
	put_offset(w, &w->info, w->abbrev.size);
	if (version < 5)
		put_u8(&w->info, 8);
}

void dwarf_writer_unit(struct dwarf_writer *w, unsigned int version)
{
	begin_unit(w, version, DW_UT_compile);
}

void dwarf_writer_split_unit(struct dwarf_writer *w, uint8_t type, uint64_t id)
{
	begin_unit(w, 5, type);
	put_u64(&w->info, id);
}

void dwarf_writer_unit_end(struct dwarf_writer *w)
{
	set_length(w, &w->info, w->unit + (w->wide ? 12 : 4));
	put_u8(&w->abbrev, 0);
}

static unsigned int fixed_size(unsigned int form)
{
	switch (form) {
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return 4;
	case DW_FORM_addr:
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
		return 8;
	}
	return 0;
}

static void put_variable(struct dwarf_writer *w, const struct dwarf_spec *spec)
{
	switch (spec->form) {
	case DW_FORM_string:
		put_string(&w->info, spec->text);
		break;
	case DW_FORM_ref_addr:
		put_number(&w->info, spec->number, w->version == 2 || w->wide ? 8 : 4);
		break;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		put_offset(w, &w->info, spec->number);
		break;
	case DW_FORM_sdata:
		put_sleb128(&w->info, (int64_t)spec->number);
		break;
	case DW_FORM_exprloc: /* NUMBER bytes */
		put_uleb128(&w->info, spec->number);
		put_zeros(&w->info, spec->number);
		break;
	case DW_FORM_indirect: /* stands for udata */
		put_uleb128(&w->info, DW_FORM_udata);
		put_uleb128(&w->info, spec->number);
		break;
	case DW_FORM_implicit_const:
		put_sleb128(&w->abbrev, (int64_t)spec->number);
		break;
	case DW_FORM_flag_present:
		break;
	default:
		put_uleb128(&w->info, spec->number);
	}
}

static bool is_local_reference(unsigned int form)
{
	return form == DW_FORM_ref1 || form == DW_FORM_ref2 || form == DW_FORM_ref4 ||
	       form == DW_FORM_ref8 || form == DW_FORM_ref_udata;
}

static void put_attribute(struct dwarf_writer *w, struct dwarf_spec spec)
{
	unsigned int size = fixed_size(spec.form);

	put_uleb128(&w->abbrev, spec.name);
	put_uleb128(&w->abbrev, spec.form);
	w->last_value = w->info.size;
	if (is_local_reference(spec.form))
		spec.number -= w->unit;
	if (size)
		put_number(&w->info, spec.number, size);
	else
		put_variable(w, &spec);
}

uint64_t dwarf_writer_die(struct dwarf_writer *w, uint16_t tag, bool children,
	const struct dwarf_spec *specs, size_t count)
{
	uint64_t offset = w->info.size;

	put_uleb128(&w->info, w->next_code);
	put_uleb128(&w->abbrev, w->next_code++);
	put_uleb128(&w->abbrev, tag);
	put_u8(&w->abbrev, children);
	for (size_t i = 0; i < count; i++)
		put_attribute(w, specs[i]);
	put_u16(&w->abbrev, 0);
	return offset;
}

void dwarf_writer_up(struct dwarf_writer *w)
{
	put_u8(&w->info, 0);
}

uint64_t dwarf_writer_string(struct buffer *section, const char *text)
{
	uint64_t offset = section->size;

	put_string(section, text);
	return offset;
}

static void put_old_tables(struct buffer *b, const struct dwarf_lines_spec *spec)
{
	for (size_t i = 0; spec->directories[i]; i++)
		put_string(b, spec->directories[i]);
	put_u8(b, 0);
	for (const struct dwarf_file_spec *f = spec->files; f->name; f++) {
		put_string(b, f->name);
		put_uleb128(b, f->directory);
		put_u16(b, 0); /* time and size */
	}
	put_u8(b, 0);
}

/* Directories with their names in place, files with theirs in .debug_line_str and an MD5 sum. */
static void put_new_tables(struct dwarf_writer *w, const struct dwarf_lines_spec *spec)
{
	static const uint8_t formats[] = { 3, DW_LNCT_path, DW_FORM_line_strp,
		DW_LNCT_directory_index, DW_FORM_udata, DW_LNCT_MD5, DW_FORM_data16 };
	struct buffer *b = &w->line;
	size_t count = 0;

	while (spec->directories[count])
		count++;
	put_u8(b, 1);
	put_u8(b, DW_LNCT_path);
	put_u8(b, DW_FORM_string);
	put_uleb128(b, count);
	for (size_t i = 0; i < count; i++)
		put_string(b, spec->directories[i]);
	for (count = 0; spec->files[count].name;)
		count++;
	buffer_append(b, formats, sizeof(formats));
	put_uleb128(b, count);
	for (size_t i = 0; i < count; i++) {
		put_offset(w, b, dwarf_writer_string(&w->line_str, spec->files[i].name));
		put_uleb128(b, spec->files[i].directory);
		put_zeros(b, 16);
	}
}

static void put_extended(struct buffer *b, uint8_t opcode, size_t operand_size)
{
	put_u8(b, 0);
	put_uleb128(b, 1 + operand_size);
	put_u8(b, opcode);
}

static void put_rows(struct buffer *b, const struct dwarf_lines_spec *spec)
{
	unsigned int line = 1;
	uint64_t address = 0;

	for (size_t i = 0; i < spec->row_count; i++) {
		const struct dwarf_row_spec *row = &spec->rows[i];

		if (row->address >= address && address) {
			put_u8(b, DW_LNS_advance_pc);
			put_uleb128(b, row->address - address);
		} else {
			put_extended(b, DW_LNE_set_address, 8);
			put_u64(b, row->address);
		}
		address = row->address;
		if (row->end) {
			put_extended(b, DW_LNE_end_sequence, 0);
			address = 0;
			line = 1;
			continue;
		}
		put_u8(b, DW_LNS_set_file);
		put_uleb128(b, row->file);
		put_u8(b, DW_LNS_set_column);
		put_uleb128(b, row->column);
		put_u8(b, DW_LNS_advance_line);
		put_sleb128(b, (int64_t)row->line - (int64_t)line);
		put_u8(b, DW_LNS_copy);
		line = row->line;
	}
}

uint64_t dwarf_writer_lines(struct dwarf_writer *w, const struct dwarf_lines_spec *spec)
{
	static const uint8_t operand_counts[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };
	struct buffer *b = &w->line;
	uint64_t offset = b->size;
	size_t start = put_length(w, b), header;

	put_u16(b, (uint16_t)spec->version);
	if (spec->version >= 5) {
		put_u8(b, 8);
		put_u8(b, 0);
	}
	put_offset(w, b, 0);
	header = b->size;
	put_u8(b, 1);
	if (spec->version >= 4)
		put_u8(b, 1);
	put_u8(b, 1);
	put_u8(b, (uint8_t)-5);
	put_u8(b, 14);
	put_u8(b, 13);
	buffer_append(b, operand_counts, sizeof(operand_counts));
	if (spec->version >= 5)
		put_new_tables(w, spec);
	else
		put_old_tables(b, spec);
	set_length(w, b, header);
	put_rows(b, spec);
	set_length(w, b, start);
	return offset;
}

static void add_section(struct elf_writer *elf, const char *name, const struct buffer *b)
{
	if (b->size)
		elf_writer_section(elf, &(struct elf_section_spec){
						.name = name, .bytes = b->bytes, .size = b->size });
}

static int make_file(struct dwarf_writer *w)
{
	struct elf_writer elf;
	int fd;

	elf_writer_init(&elf);
	elf_writer_code(&elf, ".text", CODE_LOW, CODE_SIZE);
	add_section(&elf, ".debug_info", &w->info);
	add_section(&elf, ".debug_abbrev", &w->abbrev);
	add_section(&elf, ".debug_str", &w->str);
	add_section(&elf, ".debug_line_str", &w->line_str);
	add_section(&elf, ".debug_str_offsets", &w->str_offsets);
	add_section(&elf, ".debug_line", &w->line);
	add_section(&elf, ".debug_ranges", &w->ranges);
	add_section(&elf, ".debug_rnglists", &w->rnglists);
	add_section(&elf, ".debug_addr", &w->addr);
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	return fd;
}

/* No code; line tables, addresses and, of version 4, ranges are the program's. */
static int make_split_file(const struct dwarf_split_spec *split)
{
	const struct dwarf_writer *w = split->w;
	struct elf_writer elf;
	int fd;

	elf_writer_init(&elf);
	add_section(&elf, ".debug_info.dwo", &w->info);
	add_section(&elf, ".debug_abbrev.dwo", &w->abbrev);
	add_section(&elf, ".debug_str.dwo", &w->str);
	add_section(&elf, ".debug_str_offsets.dwo", &w->str_offsets);
	add_section(&elf, ".debug_rnglists.dwo", &w->rnglists);
	if (split->cu_index)
		add_section(&elf, ".debug_cu_index", split->cu_index);
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	return fd;
}

static struct elf_image *make_image(struct dwarf_writer *w)
{
	struct elf_image *image = NULL;
	int fd = make_file(w);

	must(!elf_image_open(fd, &image));
	close(fd);
	return image;
}

static struct index *finish(struct index_writer *writer)
{
	struct index *index = NULL;
	int fd = memfd_create("index", MFD_CLOEXEC);

	must(fd >= 0 && !writer_finish(writer, fd) && !index_open(fd, &index));
	close(fd);
	return index;
}

void dwarf_writer_read(struct dwarf_writer *w, bool skip_go, struct dwarf_result *ret_result)
{
	struct elf_image *image = make_image(w);
	struct index_writer *writer = index_writer_create();
	const struct writer_segment segment = { CODE_LOW, CODE_SIZE, CODE_LOW };

	memset(ret_result, 0, sizeof(*ret_result));
	must(writer && !writer_segment(writer, &segment));
	must(!writer_code(writer, CODE_LOW, CODE_SIZE));
	ret_result->error = dwarf_read(
		image, skip_go ? DW_LANG_Go : 0, writer, &ret_result->units, &ret_result->broken);
	ret_result->index = finish(writer);
	index_writer_destroy(writer);
	elf_image_destroy(image);
}

void dwarf_writer_read_split(struct dwarf_writer *w, const struct dwarf_split_spec *splits,
	size_t count, struct dwarf_result *ret_result)
{
	struct sandbox_files files = { .elf_fd = make_file(w),
		.output_fd = memfd_create("index", MFD_CLOEXEC) };
	struct sandbox_result built;

	memset(ret_result, 0, sizeof(*ret_result));
	for (size_t i = 0; i < count; i++)
		files.debug_files.items[files.debug_files.count++] =
			(struct debug_file){ make_split_file(&splits[i]), DEBUG_FILE_SPLIT, 0 };
	ret_result->error = builder_run_files(&files, &built);
	ret_result->broken = built.broken_units;
	must(ret_result->error || !index_open(files.output_fd, &ret_result->index));
	debug_files_close(&files.debug_files);
	close(files.elf_fd);
	close(files.output_fd);
}

int64_t dwarf_writer_member(struct dwarf_writer *w, const char *type, const char *member)
{
	struct elf_image *image = make_image(w);
	uint64_t offset = 0;
	int err = dwarf_member_offset(image, type, member, &offset);

	elf_image_destroy(image);
	return err ? err : (int64_t)offset;
}

void dwarf_result_frames(
	const struct dwarf_result *result, uint64_t address, char *text, size_t size)
{
	struct index_frame frames[INDEX_MAX_FRAMES];
	size_t count = index_lookup(result->index, address, frames, INDEX_MAX_FRAMES);
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s %s:%u:%u", i ? " < " : "",
			frames[i].name, frames[i].file, frames[i].line, frames[i].column);
}
