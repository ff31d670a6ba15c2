/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pclntab as a source of the index. The Go runtime uses it to print stacks. It survives `-s -w`
 * and strip, has start lines and inline trees, and takes a tenth of the work of DWARF.
 *
 * The Go linker aligns functions; the runtime counts the padding as part of the function before it.
 * Here a function ends where its line table ends: the table covers exactly the code. C code added
 * by an external linker is outside of [text, text_end); C functions inside (linked by the Go
 * linker) have a name and no lines.
 *
 * All rows form one sequence, because ftab is ascending; gaps between functions are unknown.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/go/gopclntab.h"
#include "symbolizer/indexer/go/go_unwind.h"
#include "symbolizer/indexer/go/go.h"

enum {
	MAX_STRINGS = 1 << 23,
	RUN_STEPS = 4, /* of work */
};

/*
 * Type arguments are shown as the runtime prints them: `main.sum[...]`. (Until 1.20 the linker
 * shortened the names itself; until 1.17 brackets are arrays in names of generated functions.)
 */
static int print_name(
	struct gopclntab_reader *r, const char *name, uint32_t linkage, uint32_t *ret_name)
{
	const char *open = strchr(name, '['), *close = strrchr(name, ']');
	autofree char *text = NULL;

	if (r->table->format == GOPCLNTAB_1_16 || !open || !close || close < open) {
		*ret_name = linkage;
		return 0;
	}
	if (asprintf(&text, "%.*s[...]%s", (int)(open - name), name, close + 1) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return writer_string(r->writer, text, strlen(text), ret_name);
}

int gopclntab_reader_name(struct gopclntab_reader *r, uint32_t offset, struct writer_node *node)
{
	const char *name;
	uint64_t known;
	int error;

	if (map_get(&r->names, offset, &known)) {
		node->linkage = (uint32_t)(known >> 32);
		node->name = (uint32_t)known;
		return 0;
	}
	name = gopclntab_name(r->table, offset);
	if (!name)
		return -EBADMSG;
	error = writer_string(r->writer, name, strlen(name), &node->linkage);
	if (!error)
		error = print_name(r, name, node->linkage, &node->name);
	if (!error)
		error = map_set(&r->names, offset, (uint64_t)node->linkage << 32 | node->name);
	return error;
}

static int file_string(struct gopclntab_reader *r, int32_t file, uint32_t *ret_string)
{
	uint32_t key, string;
	const char *path;
	uint64_t known;
	int error;

	path = gopclntab_file(r->table, r->function.unit, file, &key);
	if (!path) {
		*ret_string = 0;
		return 0;
	}
	if (map_get(&r->files, key, &known)) {
		*ret_string = (uint32_t)known;
		return 0;
	}
	error = writer_string(r->writer, path, strlen(path), &string);
	if (!error)
		error = map_set(&r->files, key, string);
	if (!error)
		*ret_string = string;
	return error;
}

/* Whether the line at PC may be of an unknown inlined function. */
static bool is_unknown_call(const struct gopclntab_reader *r, uint32_t pc)
{
	if (!r->calls_unknown)
		return false;
	return !r->inlined.count || gopclntab_runs_value(&r->inlined, pc) >= 0;
}

int gopclntab_reader_line(
	struct gopclntab_reader *r, uint32_t pc, uint32_t *ret_file, uint32_t *ret_line)
{
	int32_t file = gopclntab_runs_value(&r->file, pc);
	int32_t line = gopclntab_runs_value(&r->line, pc);

	if (file < 0 || line < 0 || is_unknown_call(r, pc)) {
		*ret_file = 0;
		*ret_line = 0;
		return 0;
	}
	*ret_line = (uint32_t)line;
	return file_string(r, file, ret_file);
}

/* Advances *AT to the run that contains PC. Returns the end of that run, UINT32_MAX if none. */
static uint32_t run_end(const struct gopclntab_runs *runs, size_t *at, uint32_t pc)
{
	while (*at < runs->count && runs->items[*at].end <= pc)
		++*at;
	return *at < runs->count ? runs->items[*at].end : UINT32_MAX;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Writes a row wherever the file or the line changes, and an unknown row after the function. */
static int write_rows(struct gopclntab_reader *r)
{
	size_t file = 0, line = 0, inlined = 0;
	uint32_t pc = 0;
	int error = 0;

	while (!error && pc < r->size) {
		uint32_t from = pc, name, number;

		pc = least(run_end(&r->file, &file, from), run_end(&r->line, &line, from));
		if (r->calls_unknown)
			pc = least(pc, run_end(&r->inlined, &inlined, from));
		error = gopclntab_reader_line(r, from, &name, &number);
		if (!error)
			error = writer_row(r->writer, r->function.entry + from, name, number, 0);
	}
	if (!error && r->function.entry + r->size < r->function.next)
		error = writer_row(r->writer, r->function.entry + r->size, 0, 0, 0);
	return error;
}

/* Whether the build can go on without the failed part. */
static bool only_broken(int error)
{
	return error == -EBADMSG;
}

static int read_runs(struct gopclntab_reader *r, uint32_t offset, struct gopclntab_runs *runs)
{
	uint32_t size = (uint32_t)(r->function.next - r->function.entry);
	int error = gopclntab_runs_read(r->table, offset, size, runs);

	/* Functions may share their tables. */
	if (!work_spend(writer_work(r->writer), RUN_STEPS * (runs->count + 1)))
		error = -EBADMSG;
	if (error)
		runs->count = 0;
	return only_broken(error) ? 0 : error;
}

static int read_tables(struct gopclntab_reader *r)
{
	int error = read_runs(r, r->function.pcfile, &r->file);

	if (!error)
		error = read_runs(r, r->function.pcln, &r->line);
	if (!error)
		error = read_runs(r, r->function.pcinline, &r->inlined);
	r->size = r->line.count ? r->line.items[r->line.count - 1].end
				: (uint32_t)(r->function.next - r->function.entry);
	if (error)
		return error;
	error = gopclntab_inline_read(r);
	r->calls_unknown = only_broken(error);
	return r->calls_unknown ? 0 : error;
}

/*
 * Where the function's code begins for lookups: one byte early, in the padding before it, if its
 * entry is a return address that no call precedes. Lookups subtract 1 (as libc's tables have it).
 */
static uint64_t first_address(const struct gopclntab_reader *r)
{
	uint64_t entry = r->function.entry;

	return entry > r->code_end && go_unwind_ends_signal(r->table, &r->function) ? entry - 1
										    : entry;
}

static int write_early_row(struct gopclntab_reader *r, uint64_t first)
{
	uint32_t file, line;
	int error = gopclntab_reader_line(r, 0, &file, &line);

	return error ? error : writer_row(r->writer, first, file, line, 0);
}

static int write_function(struct gopclntab_reader *r)
{
	struct writer_node node = {
		.parent = WRITER_NONE,
		.start_line = r->function.start_line,
		.unit = GOPCLNTAB_UNIT,
	};
	uint64_t entry = r->function.entry, first = first_address(r);
	uint32_t root;
	int error;

	error = gopclntab_reader_name(r, r->function.name, &node);
	if (!error)
		error = read_tables(r);
	if (!error)
		error = writer_node(r->writer, &node, &root);
	if (!error)
		error = writer_range(r->writer, root, first, entry + r->size);
	if (!error && r->line.count && first < entry)
		error = write_early_row(r, first);
	if (!error && r->line.count)
		error = write_rows(r);
	if (!error && !r->calls_unknown)
		error = gopclntab_inline_write(r, root);
	r->code_end = entry + r->size;
	return error;
}

static int write_functions(struct gopclntab_reader *r)
{
	const struct gopclntab *table = r->table;
	uint64_t end = table->text;
	int error = 0;

	for (uint32_t i = 0; !error && i < table->function_count; i++) {
		error = gopclntab_function(table, i, &r->function);
		if (!error && (r->function.entry < end || r->function.next > table->text_end))
			error = -EBADMSG;
		if (!error && r->function.next > r->function.entry) {
			end = r->function.next;
			error = write_function(r);
		}
		if (only_broken(error))
			error = 0;
	}
	return error;
}

static void gopclntab_reader_deinit(struct gopclntab_reader *r)
{
	gopclntab_runs_deinit(&r->file);
	gopclntab_runs_deinit(&r->line);
	gopclntab_runs_deinit(&r->inlined);
	free(r->inlines);
	map_deinit(&r->names);
	map_deinit(&r->files);
}

int gopclntab_read(struct elf_image *image, struct index_writer *w, struct source_range *ret_text)
{
	autocall(gopclntab_reader_deinit) struct gopclntab_reader r = { .writer = w };
	struct gopclntab table;
	int error;

	error = gopclntab_find(image, &table);
	if (error)
		return error;
	r.table = &table;
	r.code_end = table.text;
	map_init(&r.names, MAX_STRINGS);
	map_init(&r.files, MAX_STRINGS);
	error = writer_sequence_begin(w, GOPCLNTAB_UNIT);
	if (!error)
		error = write_functions(&r);
	if (!error)
		error = writer_sequence_end(w, table.text_end);
	if (!error)
		*ret_text = (struct source_range){ .low = table.text, .high = table.text_end };
	return error;
}
