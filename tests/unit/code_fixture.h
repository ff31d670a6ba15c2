/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Indexes with functions of small programs that are written byte by byte. */
#include <stdlib.h>
#include <unistd.h>

#include "symbolizer/index/functions.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/indexer/code/decoder.h"
#include "tests/unit/small_index.h"

enum { CODE_SYMBOLS = 8, CODE_LABEL = 255 };

/* A symbol of the code at TEXT. */
struct code_symbol {
	const char *name;
	uint64_t at, size; /* from TEXT on */
	uint8_t type; /* STT_*; 0 = STT_FUNC, CODE_LABEL = STT_NOTYPE */
};

struct code_program {
	uint16_t machine; /* EM_*; 0 = x86_64 */
	const void *code;
	size_t size;
	struct code_symbol symbols[CODE_SYMBOLS]; /* up to the first without a name */
};

static inline struct index *index_of_file(int elf_fd)
{
	autoclose int output = memory_file("", 0);
	const struct sandbox_files files = {
		.elf_fd = elf_fd, .output_fd = output, .wants_functions = true
	};
	struct sandbox_result result = { .error = 1 };
	struct index *index = NULL;

	assert_int_equal(builder_run_files(&files, &result), 0);
	assert_int_equal(index_open(output, &index), 0);
	return index;
}

static inline void add_code_symbol(struct elf_writer *elf, const struct code_symbol *symbol)
{
	elf_writer_symbol(elf, &(struct elf_symbol_spec){ .name = symbol->name,
				       .address = TEXT + symbol->at,
				       .size = symbol->size,
				       .section = 1,
				       .notype = symbol->type == CODE_LABEL,
				       .type = symbol->type == CODE_LABEL ? 0 : symbol->type,
				       .bind = STB_GLOBAL });
}

static inline struct index *index_of_program(const struct code_program *program)
{
	struct elf_writer elf;
	struct index *index;
	autoclose int fd = -1;

	elf_writer_init(&elf);
	elf.machine = program->machine ? program->machine : EM_X86_64;
	elf_writer_section(&elf, &(struct elf_section_spec){ .name = ".text",
					 .flags = SHF_ALLOC | SHF_EXECINSTR,
					 .address = TEXT,
					 .bytes = program->code,
					 .size = program->size });
	for (size_t i = 0; i < CODE_SYMBOLS && program->symbols[i].name; i++)
		add_code_symbol(&elf, &program->symbols[i]);
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	index = index_of_file(fd);
	return index;
}

/*
 * Functions as `name@entry returns flags`, a space between two: offsets in hexadecimal, and a
 * letter for each flag (Fiber, No return, Tail jump, Indirect jump, Entry is return, Undecoded,
 * Resolver, unConfirmed, entry Misread).
 */
static inline const char *described(const struct index *index)
{
	static const char letters[] = "FNTIEURCM";
	static struct buffer text;
	struct index_function f;

	assert_true(index_has_functions(index));
	buffer_deinit(&text);
	buffer_init(&text, 1 << 16);
	for (size_t i = 0; i < index_function_count(index); i++) {
		assert_true(index_function(index, i, &f));
		buffer_printf(&text, "%s%s@%x", i ? " " : "", f.linkage,
			(unsigned int)(f.address - TEXT));
		for (size_t j = 0; j < f.return_count; j++)
			buffer_printf(&text, "%s%x", j ? "," : ":",
				(unsigned int)(index_function_return(index, i, j) - TEXT));
		for (size_t bit = 0; letters[bit]; bit++)
			if (f.flags >> bit & 1)
				buffer_printf(&text, "/%c", letters[bit]);
	}
	assert_int_equal(buffer_append(&text, "", 1), 0);
	return (const char *)text.bytes;
}

/* The functions of PROGRAM are those that TEXT describes. */
static inline void assert_functions(const struct code_program *program, const char *text)
{
	struct index *index = index_of_program(program);

	assert_string_equal(described(index), text);
	index_destroy(index);
}

#define CODE(...) \
	.code = (const uint8_t[]){ __VA_ARGS__ }, .size = sizeof((const uint8_t[]){ __VA_ARGS__ })
