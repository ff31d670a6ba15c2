/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The offset of g is -8 in most amd64 programs, but not in all: an external linker puts g among the
 * thread-local variables of the C code (-128 and -192 have been seen). There are two ways to find
 * it. runtime.tlsg is a TLS symbol, relative to the end of the TLS block (ELF TLS variant II);
 * strip removes it. The code that loads g has the offset as a constant, and pclntab has the address
 * of that code. If both exist they must agree.
 *
 * The offset in a shared library differs from process to process. Its code loads it from a word of
 * the GOT (initial-exec TLS), and only the address of that word is known here.
 */
#include "symbolizer/indexer/go/go_tls.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum { SYMBOL_BYTES = 24 };

static bool tls_segment(const struct elf_image *image, struct elf_segment *ret_segment)
{
	for (size_t i = 0; i < elf_image_segment_count(image); i++) {
		struct elf_segment s = elf_image_segment(image, i);

		if (s.type != PT_TLS)
			continue;
		*ret_segment = s;
		return true;
	}
	return false;
}

static bool go_tls_name_is(struct cursor names, uint32_t offset, const char *wanted)
{
	const char *name;

	cursor_seek(&names, offset);
	name = cursor_string(&names);
	return name && !strcmp(name, wanted);
}

static bool tls_symbol(struct elf_image *image, const char *wanted, uint64_t *ret_value)
{
	struct cursor symbols, names;
	struct elf_section section;

	if (!elf_image_find(image, ".symtab", &section))
		return false;
	symbols = elf_image_section_bytes(image, section.number);
	names = elf_image_section_bytes(image, section.link);
	while (cursor_left(&symbols) >= SYMBOL_BYTES) {
		uint32_t name = cursor_u32(&symbols);
		uint8_t info = cursor_u8(&symbols);
		uint64_t value;

		cursor_skip(&symbols, 3);
		value = cursor_u64(&symbols);
		cursor_skip(&symbols, 8);
		if (ELF64_ST_TYPE(info) != STT_TLS || !go_tls_name_is(names, name, wanted))
			continue;
		*ret_value = value;
		return true;
	}
	return false;
}

/* The TLS block ends at the thread pointer and begins at its alignment (variant II). */
static int offset_of_symbol(struct elf_image *image, int64_t *ret_offset)
{
	struct elf_segment tls;
	uint64_t value, align;

	if (!tls_segment(image, &tls) || !tls_symbol(image, "runtime.tlsg", &value))
		return -ENOENT;
	align = tls.align ? tls.align : 1;
	if ((align & (align - 1)) || value >= tls.memory_size || tls.memory_size > INT32_MAX)
		return -EBADMSG;
	*ret_offset = (int64_t)(value - tls.memory_size -
				((-tls.address - tls.memory_size) & (align - 1)));
	return 0;
}

bool go_tls_is_word(const struct elf_image *image, uint64_t address)
{
	if (!address || address % sizeof(uint64_t))
		return false;
	for (size_t i = 0; i < elf_image_segment_count(image); i++) {
		struct elf_segment s = elf_image_segment(image, i);

		if (s.type == PT_LOAD && s.flags & PF_W && address >= s.address &&
			address - s.address < s.file_size)
			return true;
	}
	return false;
}

static int tls_of_code(struct elf_image *image, struct go_tls *ret_tls)
{
	struct gopclntab table;
	int r;

	r = gopclntab_find(image, &table);
	if (r)
		return r;
	return elf_image_machine(image) == EM_AARCH64 ? go_tls_arm64(&table, ret_tls)
						      : go_tls_amd64(&table, ret_tls);
}

int go_tls_find(struct elf_image *image, struct go_tls *ret_tls)
{
	struct go_tls tls = { 0 };
	int64_t symbol = 0;
	int code_error = tls_of_code(image, &tls);
	int symbol_error = -ENOENT;

	/* A shared library's block is not the one next to the thread pointer. */
	if (elf_image_machine(image) == EM_X86_64 && !tls.word)
		symbol_error = offset_of_symbol(image, &symbol);
	if (code_error && code_error != -ENOENT)
		return -EOPNOTSUPP;
	if (code_error && symbol_error)
		return -EOPNOTSUPP;
	if (!code_error && !symbol_error && tls.offset != symbol)
		return -EOPNOTSUPP;
	if (code_error)
		tls.offset = symbol;
	*ret_tls = tls;
	return 0;
}
