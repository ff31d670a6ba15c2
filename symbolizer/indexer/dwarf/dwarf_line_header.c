/* SPDX-License-Identifier: Apache-2.0 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/dwarf/dwarf_line.h"

enum {
	MAX_DIRECTORIES = 1 << 18,
	MAX_FILES = 1 << 20,
	MAX_ENTRY_FIELDS = 16, /* of a file or directory in version 5; the standard defines 5 */
	MAX_PATH_BYTES = 4096,
	HEADER_STEPS = 256, /* of work, for any header; its bytes come on top */
};

void dwarf_lines_init(struct dwarf_lines *l)
{
	*l = (struct dwarf_lines){ 0 };
}

void dwarf_lines_deinit(struct dwarf_lines *l)
{
	free(l->directories);
	free(l->files);
}

static int add_directory(struct dwarf_lines *l, const char *name)
{
	if (l->directory_count == MAX_DIRECTORIES)
		return -EBADMSG;
	if (array_reserve(
		    l->directories, l->directory_capacity, l->directory_count + 1, MAX_DIRECTORIES))
		return -ENOMEM;
	l->directories[l->directory_count++] = name;
	return 0;
}

int dwarf_lines_add_file(struct dwarf_lines *l, const char *name, uint64_t directory)
{
	if (l->file_count == MAX_FILES)
		return -EBADMSG;
	if (array_reserve(l->files, l->file_capacity, l->file_count + 1, MAX_FILES))
		return -ENOMEM;
	l->files[l->file_count++] = (struct dwarf_line_file){
		.name = name, .directory = directory, .string = WRITER_NONE
	};
	return 0;
}

/* Versions 2 to 4: both lists end with an empty name. */
static int read_old_tables(struct dwarf_lines *l, struct cursor *c)
{
	const char *name;
	int err = 0;

	for (name = cursor_string(c); name && *name && !err; name = cursor_string(c))
		err = add_directory(l, name);
	for (name = err ? NULL : cursor_string(c); name && *name && !err; name = cursor_string(c)) {
		uint64_t directory = dwarf_uleb(c);

		dwarf_uleb(c); /* time */
		dwarf_uleb(c); /* size */
		err = dwarf_lines_add_file(l, name, directory);
	}
	return err ? err : c->bad ? -EBADMSG : 0;
}

struct entry_format {
	unsigned int count;
	struct {
		uint64_t content, form; /* DW_LNCT_*, DW_FORM_* */
	} fields[MAX_ENTRY_FIELDS];
};

static bool read_entry_format(struct cursor *c, struct entry_format *ret_format)
{
	ret_format->count = cursor_u8(c);
	if (ret_format->count > MAX_ENTRY_FIELDS)
		return false;
	for (unsigned int i = 0; i < ret_format->count; i++) {
		ret_format->fields[i].content = dwarf_uleb(c);
		ret_format->fields[i].form = dwarf_uleb(c);
	}
	return !c->bad;
}

struct table_reader {
	struct dwarf_lines *l;
	const struct dwarf *d;
	const struct dwarf_unit *u;
	struct dwarf_format format; /* of the table, which may differ from the unit's */
	struct cursor c;
};

/* Reads one list of version 5: the directories or the files. */
static int dwarf_line_header_read_list(struct table_reader *r, bool files)
{
	struct entry_format format;
	bool good = read_entry_format(&r->c, &format);
	uint64_t count = dwarf_uleb(&r->c);
	int err = 0;

	if (!good || (count && !format.count))
		return -EBADMSG;
	for (uint64_t i = 0; i < count && !err; i++) {
		const char *name = NULL;
		uint64_t directory = 0;

		for (unsigned int k = 0; k < format.count; k++) {
			struct dwarf_value value;

			dwarf_form_read(&r->c, &r->format,
				(unsigned int)MIN(format.fields[k].form, UINT16_MAX), 0, &value);
			if (format.fields[k].content == DW_LNCT_path)
				name = dwarf_text(r->d, r->u, &value);
			else if (format.fields[k].content == DW_LNCT_directory_index)
				directory = value.number;
		}
		/* Some forms take no bytes. */
		if (r->c.bad || !work_spend(r->d->work, format.count))
			return -EBADMSG;
		err = files ? dwarf_lines_add_file(r->l, name, directory)
			    : add_directory(r->l, name);
	}
	return err;
}

/* Reads the header from the minimum instruction length to the operand counts. */
static bool read_parameters(struct dwarf_lines *l, struct cursor *c)
{
	l->min_instruction_size = cursor_u8(c);
	if (l->version >= 4)
		cursor_u8(c); /* operations per instruction: 1 but on VLIW machines */
	cursor_u8(c); /* default_is_stmt: we use all rows */
	l->line_base = (int8_t)cursor_u8(c);
	l->line_range = cursor_u8(c);
	l->opcode_base = cursor_u8(c);
	for (unsigned int i = 1; i < l->opcode_base; i++)
		l->operand_counts[i] = cursor_u8(c);
	return !c->bad && l->line_range && l->opcode_base;
}

/* Bounds R's cursor to the table and reads up to the header's length, to find the program. */
static int read_start(struct table_reader *r)
{
	struct dwarf_lines *l = r->l;
	uint64_t length = cursor_u32(&r->c);
	uint64_t header_length;
	uint16_t version;

	r->format.offset_size = 4;
	if (length == UINT32_MAX) {
		r->format.offset_size = 8;
		length = cursor_u64(&r->c);
	}
	if (r->c.bad || length > cursor_left(&r->c))
		return -EBADMSG;
	r->c.end = r->c.at + length;
	version = cursor_u16(&r->c);
	if (version < 2 || version > 5)
		return -EBADMSG;
	l->version = r->format.version = (uint8_t)version;
	if (version == 5)
		cursor_skip(&r->c, 2); /* address and segment selector size */
	header_length = cursor_unsigned(&r->c, r->format.offset_size);
	if (r->c.bad || header_length > cursor_left(&r->c) ||
		!work_spend(r->d->work, HEADER_STEPS + header_length))
		return -EBADMSG;
	l->program = r->c;
	cursor_skip(&l->program, header_length);
	return 0;
}

static int dwarf_line_header_read_header(struct table_reader *r)
{
	int err = read_start(r);

	if (err)
		return err;
	r->c.end = r->l->program.at;
	if (!read_parameters(r->l, &r->c))
		return -EBADMSG;
	if (r->l->version < 5)
		return read_old_tables(r->l, &r->c);
	err = dwarf_line_header_read_list(r, false);
	return err ? err : dwarf_line_header_read_list(r, true);
}

void dwarf_lines_close(struct dwarf_lines *l)
{
	l->is_open = false;
	l->directory_count = l->file_count = 0;
}

/* Neighbouring units often share a table. */
static bool dwarf_lines_are_open(const struct dwarf_lines *l, const struct dwarf_unit *u)
{
	return l->is_open && l->line_off == u->line_off &&
	       l->str_offsets_base == u->str_offsets_base && !strcmp(l->comp_dir, u->comp_dir);
}

int dwarf_lines_open(struct dwarf_lines *l, const struct dwarf *d, const struct dwarf_unit *u)
{
	struct table_reader r = { .l = l, .d = d, .u = u, .c = d->sections.line };
	int err = -EBADMSG;

	if (dwarf_lines_are_open(l, u))
		return 0;
	dwarf_lines_close(l);
	l->version = u->format.version;
	l->comp_dir = u->comp_dir;
	if (cursor_seek(&r.c, u->line_off))
		err = dwarf_line_header_read_header(&r);
	if (err)
		l->directory_count = l->file_count = 0;
	l->is_open = !err;
	l->line_off = u->line_off;
	l->str_offsets_base = u->str_offsets_base;
	return err;
}

static bool is_absolute(const char *path)
{
	return path[0] == '/';
}

/* Returns the name of a directory; "" if unknown, or the compilation directory before version 5. */
static const char *directory_name(const struct dwarf_lines *l, uint64_t number)
{
	if (l->version < 5) {
		if (!number)
			return "";
		number--;
	}
	if (number >= l->directory_count || !l->directories[number])
		return "";
	return l->directories[number];
}

/*
 * Gets a file's directory as up to two parts of a path. Directory 0 of version 5 is the compilation
 * directory itself and may be relative, so the unit's comp_dir must not be prepended.
 */
static void directory_parts(const struct dwarf_lines *l, uint64_t number, const char *parts[2])
{
	const char *own = directory_name(l, number);
	const char *base = l->comp_dir;

	if (l->version == 5 && !*base)
		base = directory_name(l, 0);
	parts[0] = is_absolute(own) ? "" : base;
	parts[1] = own;
	if (l->version < 5 || number || is_absolute(own))
		return;
	parts[0] = is_absolute(base) ? base : own;
	parts[1] = "";
}

static void append_part(char *path, size_t *size, const char *part)
{
	size_t length;

	if (*size && path[*size - 1] != '/' && *part && *size < MAX_PATH_BYTES)
		path[(*size)++] = '/';
	length = strnlen(part, MAX_PATH_BYTES - *size);
	memcpy(path + *size, part, length);
	*size += length;
}

static int make_path(struct dwarf_lines *l, struct index_writer *w,
	const struct dwarf_line_file *file, uint32_t *ret_string)
{
	const char *parts[2] = { "", "" };
	char path[MAX_PATH_BYTES];
	size_t size = 0;

	*ret_string = 0;
	if (!file->name || !*file->name)
		return 0;
	if (!is_absolute(file->name))
		directory_parts(l, file->directory, parts);
	append_part(path, &size, parts[0]);
	append_part(path, &size, parts[1]);
	append_part(path, &size, file->name);
	if (size == MAX_PATH_BYTES) /* truncated */
		return 0;
	return writer_string(w, path, size, ret_string);
}

int dwarf_lines_path(
	struct dwarf_lines *l, struct index_writer *w, uint64_t file, uint32_t *ret_string)
{
	struct dwarf_line_file *entry;
	int err = 0;

	*ret_string = 0;
	if (l->version < 5)
		file--; /* 0 means no file and wraps to a number out of range */
	if (file >= l->file_count)
		return 0;
	entry = &l->files[file];
	if (entry->string == WRITER_NONE)
		err = make_path(l, w, entry, &entry->string);
	if (!err)
		*ret_string = entry->string;
	return err;
}
