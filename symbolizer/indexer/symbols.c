/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol tables as a source: each symbol of executable code is a function. */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/symbols.h"

enum {
	MAX_SYMBOLS = 1 << 23,
	MAX_NAME_BYTES = 64 * 1024,
	SYMBOL_STEPS = 64, /* of work */
	NOP_BYTES = 4, /* aarch64 */
};

struct symbol_table {
	struct elf_image *image;
	const struct source_range *skip;
	struct index_writer *writer;
	struct cursor names;
	bool is_partial; /* of a stripped file: has only the symbols that other files use */
};

static bool symbols_is_code(
	const struct symbol_table *t, const Elf64_Sym *symbol, uint64_t *ret_limit)
{
	struct elf_section section = elf_image_section(t->image, symbol->st_shndx);
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE && type != STT_OBJECT)
		return false;
	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE)
		return false;
	if (!(section.flags & SHF_EXECINSTR) || !(section.flags & SHF_ALLOC))
		return false;
	return !__builtin_add_overflow(section.address, section.size, ret_limit);
}

static enum writer_symbol_rank symbols_rank_of(const Elf64_Sym *symbol)
{
	/* GHC says STT_OBJECT of code; elsewhere such symbols in code sections are tables. */
	if (ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE ||
		ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT)
		return WRITER_SYMBOL_NOTYPE;
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
	case STB_GNU_UNIQUE:
		return WRITER_SYMBOL_GLOBAL;
	case STB_WEAK:
		return WRITER_SYMBOL_WEAK;
	default:
		return WRITER_SYMBOL_LOCAL;
	}
}

/* Whether a symbol without a size marks where code ends: linkers and Go's put these there. */
static bool symbols_marks_end(const char *name)
{
	static const char *const marks[] = { "etext", "_etext", "__etext", "runtime.etext" };

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (!strcmp(name, marks[i]))
			return true;
	return false;
}

/*
 * Returns the length of NAME without its version (`memcpy@@GLIBC_2.14`); 0 if it names no function:
 * assembler labels (`.L12`) and aarch64's marks of code and data (`$x`, `$d.3`; "ELF for the Arm
 * 64-bit Architecture", Mapping symbols).
 */
static size_t name_length(const char *name, enum writer_symbol_rank rank)
{
	const char *version = strchr(name, '@');

	if (rank == WRITER_SYMBOL_NOTYPE && (name[0] == '$' || !strncmp(name, ".L", 2)))
		return 0;
	return version && version > name ? (size_t)(version - name) : strlen(name);
}

/*
 * Signal handlers on aarch64 return to the start of this function of the vDSO (as __restore_rt of
 * other architectures). The nop before it is there so that the address before their return has an
 * entry (arch/arm64/kernel/vdso/sigreturn.S); it is to have the name, too.
 */
static uint64_t symbols_room_before(const struct symbol_table *t, const char *name)
{
	return elf_image_machine(t->image) == EM_AARCH64 && !strcmp(name, "__kernel_rt_sigreturn")
		       ? NOP_BYTES
		       : 0;
}

static int add_symbol(const struct symbol_table *t, const Elf64_Sym *symbol)
{
	enum writer_symbol_rank rank = symbols_rank_of(symbol);
	struct cursor names = t->names;
	uint32_t string;
	uint64_t limit, before;
	const char *name;
	size_t length;
	int err;

	if (!writer_asks_symbol(t->writer, symbol->st_value, symbol->st_size) ||
		!symbols_is_code(t, symbol, &limit))
		return 0;
	if (symbol->st_value >= t->skip->low && symbol->st_value < t->skip->high)
		return 0;
	/*
	 * A symbol without a size (crtstuff's frame_dummy) ends at the skipped
	 * range.
	 */
	if (symbol->st_value < t->skip->low && limit > t->skip->low)
		limit = t->skip->low;
	cursor_seek(&names, symbol->st_name);
	if (cursor_left(&names) > MAX_NAME_BYTES)
		names.end = names.at + MAX_NAME_BYTES + 1;
	name = cursor_string(&names);
	length = name ? name_length(name, rank) : 0;
	if (!length || length > MAX_NAME_BYTES || (!symbol->st_size && symbols_marks_end(name)))
		return 0;
	err = writer_string(t->writer, name, length, &string);
	if (err)
		return err;
	if (t->is_partial && rank == WRITER_SYMBOL_NOTYPE)
		rank |= WRITER_SYMBOL_LABEL;
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		rank |= WRITER_SYMBOL_RESOLVER;
	before = MIN(symbols_room_before(t, name), symbol->st_value);
	return writer_symbol(t->writer, symbol->st_value - before,
		symbol->st_size ? symbol->st_size + before : 0, limit, string, rank);
}

static int symbols_read_table(struct symbol_table *t, const struct elf_section *section)
{
	struct cursor symbols = elf_image_section_bytes(t->image, section->number);
	size_t count = cursor_left(&symbols) / sizeof(Elf64_Sym);
	int err = 0;

	if (count > MAX_SYMBOLS)
		return -E2BIG;
	t->names = elf_image_section_bytes(t->image, section->link);
	for (size_t i = 0; i < count && !err; i++) {
		Elf64_Sym symbol;

		/* Several tables may be the same bytes. */
		if (!work_spend(writer_work(t->writer), SYMBOL_STEPS))
			return -EBADMSG;
		memcpy(&symbol, cursor_bytes(&symbols, sizeof(symbol)), sizeof(symbol));
		symbol.st_value = elf_image_symbol_address(t->image, &symbol);
		err = add_symbol(t, &symbol);
	}
	return err;
}

int symbols_read(struct elf_image *image, const struct source_range *skip, struct index_writer *w)
{
	static const struct source_range nothing;
	struct symbol_table t = {
		.image = image,
		.skip = skip ? skip : &nothing,
		.writer = w,
	};
	int err = 0;

	for (size_t i = 0; i < elf_image_section_count(image) && !err; i++) {
		struct elf_section section = elf_image_section(image, i);

		if (section.type != SHT_SYMTAB && section.type != SHT_DYNSYM)
			continue;
		t.is_partial = section.type == SHT_DYNSYM;
		writer_source(
			w, section.type == SHT_SYMTAB ? INDEX_SOURCE_SYMTAB : INDEX_SOURCE_DYNSYM);
		err = symbols_read_table(&t, &section);
	}
	return err;
}
