/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/gopclntab_writer.h"

#include <assert.h>

#include "tests/unit/bytes.h"

enum { LIMIT = 1 << 20, TABLES = 5, MODULE_SIZE = 0x250 };

void gopclntab_writer_init(struct gopclntab_writer *w, unsigned int format)
{
	*w = (struct gopclntab_writer){
		.format = format,
		.magic = format == 16   ? 0xfffffffa
			 : format == 18 ? 0xfffffff0
					: 0xfffffff1,
		.quantum = 1,
		.pointer_size = 8,
		.text_start = GO_TEXT,
		.offsets = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
		.section = ".gopclntab",
		.module_section = ".noptrdata",
		.module_text = GO_TEXT,
		.module_funcdata = GO_FUNCDATA,
	};
	buffer_init(&w->names, LIMIT);
	buffer_init(&w->units, LIMIT);
	buffer_init(&w->files, LIMIT);
	buffer_init(&w->pctab, LIMIT);
	buffer_init(&w->entries, LIMIT);
	buffer_init(&w->records, LIMIT);
	buffer_init(&w->trees, LIMIT);
	put_u8(&w->pctab, 0); /* offset 0 means no table */
	elf_writer_init(&w->elf);
}

void gopclntab_writer_deinit(struct gopclntab_writer *w)
{
	buffer_deinit(&w->names);
	buffer_deinit(&w->units);
	buffer_deinit(&w->files);
	buffer_deinit(&w->pctab);
	buffer_deinit(&w->entries);
	buffer_deinit(&w->records);
	buffer_deinit(&w->trees);
	elf_writer_deinit(&w->elf);
}

uint32_t gopclntab_writer_name(struct gopclntab_writer *w, const char *name)
{
	uint32_t offset = (uint32_t)w->names.size;

	put_string(&w->names, name);
	return offset;
}

uint32_t gopclntab_writer_path(struct gopclntab_writer *w, const char *path)
{
	put_u32(&w->units, (uint32_t)w->files.size);
	put_string(&w->files, path);
	return (uint32_t)w->units.size / 4 - 1;
}

uint32_t gopclntab_writer_table(
	struct gopclntab_writer *w, const struct gopclntab_table_part *parts, size_t count)
{
	uint32_t offset = (uint32_t)w->pctab.size;
	int32_t value = -1;

	for (size_t i = 0; i < count; i++) {
		int32_t delta = parts[i].value - value;

		put_uleb128(&w->pctab, ((uint32_t)delta << 1) ^ (uint32_t)(delta >> 31));
		put_uleb128(&w->pctab, parts[i].size / w->quantum);
		value = parts[i].value;
	}
	put_u8(&w->pctab, 0);
	return offset;
}

static uint32_t inline_entry_size(const struct gopclntab_writer *w)
{
	return w->format == 20 ? 16 : 20;
}

uint32_t gopclntab_writer_inline(
	struct gopclntab_writer *w, uint32_t name, uint32_t parent_pc, uint32_t start_line)
{
	uint32_t number = (uint32_t)w->trees.size / inline_entry_size(w);

	put_u32(&w->trees, 0); /* parent until 1.19, function id */
	if (w->format != 20)
		put_u64(&w->trees, 0x7777777700000000); /* file and line, which nobody reads */
	put_u32(&w->trees, name);
	put_u32(&w->trees, parent_pc);
	if (w->format == 20)
		put_u32(&w->trees, start_line);
	return number;
}

static void put_funcdata(struct gopclntab_writer *w, const struct gopclntab_function_spec *spec)
{
	uint64_t offset = (uint64_t)spec->tree * inline_entry_size(w);

	if (w->format != 16) {
		for (int i = 0; i < 3; i++)
			put_u32(&w->records, UINT32_MAX);
		put_u32(&w->records, spec->tree == GO_NO_TREE ? UINT32_MAX : (uint32_t)offset);
		return;
	}
	/* ftab (16 bytes an entry, one more than functions) is a multiple of 8 too. */
	put_zeros(&w->records, -w->records.size & 7);
	put_zeros(&w->records, 24);
	put_u64(&w->records, spec->tree == GO_NO_TREE ? 0 : GO_FUNCDATA + offset);
}

void gopclntab_writer_function(
	struct gopclntab_writer *w, const struct gopclntab_function_spec *spec)
{
	struct buffer *b = &w->records;

	put_zeros(b, -b->size & 7);
	put_u32(&w->entries, spec->entry);
	put_u32(&w->entries, (uint32_t)b->size);
	if (!w->count++)
		w->first_entry = spec->entry;
	if (w->format == 16)
		put_u64(b, GO_TEXT + spec->entry);
	else
		put_u32(b, spec->entry);
	put_u32(b, spec->name);
	put_zeros(b, 8); /* args, deferreturn */
	put_u32(b, spec->pcsp);
	put_u32(b, spec->pcfile);
	put_u32(b, spec->pcln);
	put_u32(b, spec->pcdata_count ? spec->pcdata_count : 3);
	put_u32(b, 0); /* unit */
	if (w->format == 20)
		put_u32(b, spec->start_line);
	put_u8(b, 0); /* function id */
	put_u8(b, spec->flags);
	put_u8(b, 0);
	put_u8(b, 4); /* funcdata */
	put_zeros(b, 8);
	put_u32(b, spec->pcinline);
	put_funcdata(w, spec);
}

/* ftab and the records behind it; an entry's record counts from ftab's start. */
static void put_functions(struct gopclntab_writer *w, uint32_t end, struct buffer *b)
{
	uint32_t entry_size = w->format == 16 ? 8 : 4;
	uint32_t records = (w->count + 1) * 2 * entry_size;
	uint32_t words[2];

	records += -records & 7;
	for (uint32_t i = 0; i < w->count; i++) {
		memcpy(words, w->entries.bytes + i * 8, sizeof(words));
		if (w->format == 16) {
			put_u64(b, GO_TEXT + words[0]);
			put_u64(b, records + words[1]);
			continue;
		}
		put_u32(b, words[0]);
		put_u32(b, records + words[1]);
	}
	if (w->format == 16)
		put_u64(b, GO_TEXT + end);
	else
		put_u32(b, end);
	while (b->size % 8)
		put_u8(b, 0);
	if (w->format == 16)
		put_zeros(b, 8);
	buffer_append(b, w->records.bytes, w->records.size);
}

void gopclntab_writer_blob(struct gopclntab_writer *w, uint32_t end, struct buffer *ret_blob)
{
	const struct buffer *tables[] = { &w->names, &w->units, &w->files, &w->pctab };
	struct buffer *b = ret_blob;
	size_t header, offsets[TABLES];

	put_u32(b, w->magic);
	put_u16(b, 0);
	put_u8(b, w->quantum);
	put_u8(b, w->pointer_size);
	put_u64(b, w->functions ? w->functions : w->count);
	put_u64(b, 1); /* files */
	if (w->format != 16)
		put_u64(b, w->text_start);
	header = b->size;
	put_zeros(b, TABLES * 8);
	for (int i = 0; i < TABLES - 1; i++) {
		offsets[i] = b->size;
		buffer_append(b, tables[i]->bytes, tables[i]->size);
		put_zeros(b, -b->size & 7);
	}
	offsets[TABLES - 1] = b->size;
	put_functions(w, end, b);
	for (int i = 0; i < TABLES; i++) {
		if (w->offsets[i] == UINT64_MAX)
			w->offsets[i] = offsets[i];
		set_u64(b, header + (size_t)i * 8, w->offsets[i]);
	}
	assert(!b->error);
}

static void put_module(struct gopclntab_writer *w, uint32_t end, struct buffer *b)
{
	uint32_t funcdata_at = w->format == 20 ? 320 : 304;

	put_zeros(b, MODULE_SIZE);
	set_u64(b, 0, GO_PCLNTAB);
	set_u64(b, 8, GO_PCLNTAB + w->offsets[0]);
	set_u64(b, 104, GO_PCLNTAB + w->offsets[4]);
	set_u64(b, 136, w->module_functions ? w->module_functions : w->count + 1);
	set_u64(b, 160, GO_TEXT + w->first_entry);
	set_u64(b, 168, GO_TEXT + end);
	set_u64(b, 176, w->module_text);
	set_u64(b, 184, GO_TEXT + GO_TEXT_SIZE);
	if (w->module_funcdata_at) {
		set_u64(b, funcdata_at, 0x1234);
		funcdata_at = w->module_funcdata_at;
	}
	set_u64(b, funcdata_at, w->module_funcdata);
}

static void add(struct gopclntab_writer *w, const char *name, uint64_t address, uint64_t flags,
	const struct buffer *contents)
{
	elf_writer_section(&w->elf, &(struct elf_section_spec){
					    .name = name,
					    .flags = SHF_ALLOC | flags,
					    .address = address,
					    .bytes = contents->bytes,
					    .size = contents->size,
				    });
}

int gopclntab_writer_file(struct gopclntab_writer *w, uint32_t end)
{
	struct buffer blob, module;
	int fd;

	buffer_init(&blob, LIMIT);
	buffer_init(&module, LIMIT);
	elf_writer_section(&w->elf, &(struct elf_section_spec){ .name = ".text",
					    .flags = SHF_ALLOC | SHF_EXECINSTR,
					    .address = GO_TEXT,
					    .bytes = w->code,
					    .size = GO_TEXT_SIZE });
	gopclntab_writer_blob(w, end, &blob);
	add(w, w->section, GO_PCLNTAB, 0, &blob);
	put_zeros(&w->trees, 8);
	add(w, ".rodata", GO_FUNCDATA, 0, &w->trees);
	put_module(w, end, &module);
	if (!w->no_module)
		add(w, w->module_section, GO_MODULE, SHF_WRITE, &module);
	fd = elf_writer_file(&w->elf);
	buffer_deinit(&blob);
	buffer_deinit(&module);
	return fd;
}
