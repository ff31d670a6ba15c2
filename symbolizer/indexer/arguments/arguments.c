/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/arguments/arguments.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/arguments/function.h"
#include "symbolizer/indexer/elf/images.h"
#include "symbolizer/sandbox/arguments_wire.h"

enum {
	MAX_SCOPES = 8, /* namespaces and classes in each other */
	MAX_UNITS = 1 << 20,
};

struct reading {
	Dwarf *dwarf;
	int output_fd;
	uint64_t *entries;
	bool *answered;
	uint8_t *symbols; /* of each entry: enum compiler_symbol */
	size_t count;
	struct function_file file;
	struct values values;
	int err; /* of the output; ends the reading */
};

/* ---- the question --------------------------------------------------------------------------- */

static int arguments_read_question(const struct sandbox_files *files, struct reading *r)
{
	struct arguments_question question;
	size_t bytes;

	if (io_read_at(files->output_fd, 0, &question, sizeof(question)) != sizeof(question) ||
		question.magic != ARGUMENTS_QUESTION_MAGIC ||
		question.count > ARGUMENTS_FUNCTIONS_MAX)
		return -EBADMSG;
	bytes = question.count * sizeof(r->entries[0]);
	r->entries = malloc(bytes ? bytes : 1);
	r->answered = calloc(question.count ? question.count : 1, sizeof(r->answered[0]));
	r->symbols = calloc(question.count ? question.count : 1, sizeof(r->symbols[0]));
	if (!r->entries || !r->answered || !r->symbols)
		return -ENOMEM;
	if (io_read_at(files->output_fd, sizeof(question), r->entries, bytes) != (ssize_t)bytes)
		return -EBADMSG;
	r->count = question.count;
	return ftruncate(files->output_fd, 0) || lseek(files->output_fd, 0, SEEK_SET) ? -errno : 0;
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void arguments_write(struct reading *r, const void *bytes, size_t size)
{
	const char zeros[8] = "";
	size_t padding = -size % sizeof(zeros);

	if (!r->err && size)
		r->err = io_write_all(r->output_fd, bytes, size);
	if (!r->err && padding)
		r->err = io_write_all(r->output_fd, zeros, padding);
}

static void arguments_answer(struct reading *r, size_t number, Dwarf_Die *die)
{
	struct function function = {
		.die = *die,
		.entry = r->entries[number],
		.symbol = r->symbols[number],
	};
	autofree struct argument_plan *entry = NULL, *results = NULL;
	struct arguments_answer answer = {
		.magic = ARGUMENTS_ANSWER_MAGIC,
		.function = (uint32_t)number,
	};

	r->answered[number] = true;
	function_entry(&r->file, &function, &r->values);
	entry = argument_builder_finish(&r->values.builder);
	function_results(&r->file, &function, &r->values);
	results = argument_builder_finish(&r->values.builder);
	if (!entry || !results) {
		r->err = -ENOMEM;
		return;
	}
	answer.entry_bytes = entry->count ? (uint32_t)argument_plan_size(entry) : 0;
	answer.return_bytes = results->count ? (uint32_t)argument_plan_size(results) : 0;
	arguments_write(r, &answer, sizeof(answer));
	arguments_write(r, entry, answer.entry_bytes);
	arguments_write(r, results, answer.return_bytes);
}

/* ---- functions ------------------------------------------------------------------------------ */

/* The first function in question from ADDRESS on; r->count if there is none. */
static size_t arguments_first_from(const struct reading *r, uint64_t address)
{
	size_t low = 0, high = r->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->entries[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Where FUNCTION is entered (DWARF 5, 2.18): of one in several parts, such as hot and cold, in the
 * first. */
static bool arguments_entry(Dwarf_Die *function, Dwarf_Addr *ret_entry)
{
	Dwarf_Addr base, end;

	return !dwarf_entrypc(function, ret_entry) ||
	       dwarf_ranges(function, 0, &base, ret_entry, &end) > 0;
}

static void arguments_visit_function(struct reading *r, Dwarf_Die *function)
{
	Dwarf_Addr entry;
	size_t number;

	if (!arguments_entry(function, &entry))
		return;
	number = arguments_first_from(r, entry);
	if (number < r->count && r->entries[number] == entry && !r->answered[number])
		arguments_answer(r, number, function);
}

static bool arguments_is_scope(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_class_type || tag == DW_TAG_module;
}

static void arguments_visit_scope(struct reading *r, Dwarf_Die *scope, int nesting)
{
	Dwarf_Die child;

	if (nesting == MAX_SCOPES || dwarf_child(scope, &child))
		return;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_subprogram)
			arguments_visit_function(r, &child);
		else if (arguments_is_scope(tag))
			arguments_visit_scope(r, &child, nesting + 1);
	} while (!r->err && !dwarf_siblingof(&child, &child));
}

/* ---- units ---------------------------------------------------------------------------------- */

/* Whether a function in question is in UNIT's code. */
static bool arguments_is_wanted(const struct reading *r, Dwarf_Die *unit)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0) {
		size_t first = arguments_first_from(r, begin);

		if (first < r->count && r->entries[first] < end)
			return true;
	}
	return false;
}

/* libdw would open the file of a split unit by its path, which a sandbox does not survive. */
static bool arguments_is_split(Dwarf_Die *unit)
{
	return dwarf_hasattr(unit, DW_AT_dwo_name) || dwarf_hasattr(unit, DW_AT_GNU_dwo_name);
}

/* Says of the functions in a split UNIT why nothing is known. */
static void arguments_refuse_split(struct reading *r, Dwarf_Die *unit)
{
	Dwarf_Addr base, begin, end;
	ptrdiff_t at = 0;

	while (!r->err && (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0)
		for (size_t i = arguments_first_from(r, begin);
			i < r->count && r->entries[i] < end && !r->err; i++) {
			const struct arguments_answer answer = {
				.magic = ARGUMENTS_SPLIT_MAGIC,
				.function = (uint32_t)i,
			};

			if (!r->answered[i])
				arguments_write(r, &answer, sizeof(answer));
			r->answered[i] = true;
		}
}

static void arguments_visit_units(struct reading *r, struct sandbox_result *ret_result)
{
	Dwarf_Off off = 0, next;
	size_t header;

	for (int i = 0; i < MAX_UNITS && !r->err; i++, off = next) {
		Dwarf_Die unit;

		if (dwarf_nextcu(r->dwarf, off, &next, &header, NULL, NULL, NULL))
			return;
		if (!dwarf_offdie(r->dwarf, off + header, &unit)) {
			ret_result->broken_units++;
			continue;
		}
		if (arguments_is_split(&unit)) {
			arguments_refuse_split(r, &unit);
			continue;
		}
		if (!arguments_is_wanted(r, &unit))
			continue;
		function_file_set_unit(&r->file, &unit);
		arguments_visit_scope(r, &unit, 0);
	}
}

/* ---- files ---------------------------------------------------------------------------------- */

static void arguments_note_symbol(struct reading *r, const char *name, const GElf_Sym *symbol)
{
	size_t number = arguments_first_from(r, symbol->st_value);

	if (!strcmp(name, "runtime.types"))
		r->file.types = symbol->st_value;
	if (!strcmp(name, "runtime.etypes"))
		r->file.types_end = symbol->st_value;
	if (number < r->count && r->entries[number] == symbol->st_value &&
		GELF_ST_TYPE(symbol->st_info) == STT_FUNC)
		r->symbols[number] |= compiler_symbol(name, GELF_ST_BIND(symbol->st_info));
}

/* What symbols say: where Go's types are, and how functions were compiled. */
static void arguments_read_symbols(struct reading *r)
{
	Elf *elf = dwarf_getelf(r->dwarf);
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section)) != NULL) {
		Elf_Data *data;
		GElf_Shdr header;
		GElf_Sym symbol;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
			const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);

			if (name)
				arguments_note_symbol(r, name, &symbol);
		}
	}
	if (r->file.types_end <= r->file.types || !r->file.types)
		r->file.types = r->file.types_end = 0;
}

/* The dwz file, if there is one only; more were not told apart. */
static int arguments_alternate_fd(const struct sandbox_files *files)
{
	int fd = -1;

	for (size_t i = 0; i < files->debug_files.count; i++) {
		if (files->debug_files.items[i].role != DEBUG_FILE_SUPPLEMENTARY)
			continue;
		if (fd >= 0)
			return -1;
		fd = files->debug_files.items[i].fd;
	}
	return fd;
}

/* A file with DWARF. libelf gets it as memory: of a descriptor it would ask what a path is asked.
 */
struct dwarf_file {
	void *bytes;
	size_t size;
	Elf *elf;
	Dwarf *dwarf;
};

static void dwarf_file_close(struct dwarf_file *file)
{
	dwarf_end(file->dwarf);
	elf_end(file->elf);
	if (file->size)
		munmap(file->bytes, file->size);
}

static int dwarf_file_open(int fd, struct dwarf_file *file)
{
	struct stat st;
	int err = io_fstat(fd, &st);

	if (err || st.st_size <= 0)
		return err ? err : -EBADMSG;
	/* Private and writable: libelf may convert in place. */
	file->bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (file->bytes == MAP_FAILED)
		return -errno;
	file->size = (size_t)st.st_size;
	elf_version(EV_CURRENT);
	file->elf = elf_memory(file->bytes, file->size);
	if (file->elf)
		file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	return file->dwarf ? 0 : -ENOENT;
}

static int arguments_read_dwarf(const struct sandbox_files *files, struct images *images,
	struct reading *r, struct sandbox_result *result)
{
	autocall(dwarf_file_close) struct dwarf_file file = { 0 }, alternate = { 0 };
	bool is_separate = images->debug && images_dwarf(images) == images->debug;
	int alternate_fd = images->alternate ? arguments_alternate_fd(files) : -1;
	int err = dwarf_file_open(is_separate ? images->debug_fd : files->elf_fd, &file);

	/* Without it libdw would look for the file, which the sandbox does not survive. */
	if (!err && images->names_alternate)
		err = alternate_fd < 0 ? -EOPNOTSUPP : dwarf_file_open(alternate_fd, &alternate);
	if (err)
		return err;
	if (alternate.dwarf)
		dwarf_setalt(file.dwarf, alternate.dwarf);
	r->dwarf = file.dwarf;
	arguments_read_symbols(r);
	arguments_visit_units(r, result);
	return r->err;
}

int arguments_run(const struct sandbox_files *files, struct sandbox_result *ret_result)
{
	autofree struct reading *r = calloc(1, sizeof(*r));
	struct images images;
	int err;

	if (!r)
		return -ENOMEM;
	r->output_fd = files->output_fd;
	err = arguments_read_question(files, r);
	if (!err)
		err = images_open(files->elf_fd, &files->debug_files, &images);
	if (!err) {
		err = arguments_read_dwarf(files, &images, r, ret_result);
		images_deinit(&images);
	}
	free(r->entries);
	free(r->answered);
	free(r->symbols);
	return err;
}
