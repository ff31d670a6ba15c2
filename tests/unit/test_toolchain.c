/* SPDX-License-Identifier: Apache-2.0 */
/* The toolchain of a program, from its .comment and Go's build information; malformed comments. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/toolchain.h"
#include "tests/unit/elf_writer.h"

enum { BUILDINFO = 0x5000 };

static void begin(struct elf_writer *w, const char *comment, size_t size)
{
	elf_writer_init(w);
	elf_writer_code(w, ".text", 0x1000, 64);
	if (size)
		elf_writer_section(w, &(struct elf_section_spec){
					      .name = ".comment", .bytes = comment, .size = size });
}

static void toolchain_of(struct elf_writer *w, char text[TOOLCHAIN_BYTES])
{
	autoclose int fd = elf_writer_file(w);
	struct elf_image *image = NULL;

	elf_writer_deinit(w);
	assert_int_equal(elf_image_open(fd, &image), 0);
	toolchain_read(image, text);
	elf_image_destroy(image);
}

static void assert_comment(const char *comment, size_t size, const char *expected)
{
	char text[TOOLCHAIN_BYTES];
	struct elf_writer w;

	begin(&w, comment, size);
	toolchain_of(&w, text);
	assert_string_equal(text, expected);
}

static void comments_of_compilers(void **state)
{
	static const char gcc[] = "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0",
			  red_hat[] = "GCC: (GNU) 8.5.0 20210514 (Red Hat 8.5.0-4)",
			  clang[] = "GCC: (Debian 12.2.0-14) 12.2.0\0Debian clang version 14.0.6",
			  clang_first[] = "clang version 17.0.1 (https://x y)\0GCC: (GNU) 12.2.0",
			  rust[] =
				  "GCC: (GNU) 12.2.0\0rustc version 1.63.0 (4b91a6ea7 2022-08-08)\0"
				  "clang version 14.0.6";

	(void)state;
	assert_comment(gcc, sizeof(gcc), "GCC 12.2.0");
	assert_comment(red_hat, sizeof(red_hat), "GCC 8.5.0");
	assert_comment(clang, sizeof(clang), "Clang 14.0.6");
	assert_comment(clang_first, sizeof(clang_first), "Clang 17.0.1");
	assert_comment(rust, sizeof(rust), "Rust 1.63.0");
}

static void comments_that_tell_nothing(void **state)
{
	static const char other[] = "Linker: LLD 14.0.6", no_version[] = "GCC: (GNU) \x1b[2J",
			  endless[] = { 'G', 'C', 'C', ':', ' ', '(', ')', ' ', '1' },
			  nothing[] = "\0\0\0";
	static const char long_one[] =
		"rustc version 1.2.3-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	char text[TOOLCHAIN_BYTES];
	struct elf_writer w;

	(void)state;
	assert_comment(other, sizeof(other), "");
	assert_comment(no_version, sizeof(no_version), "GCC");
	assert_comment(endless, sizeof(endless), ""); /* no NUL */
	assert_comment(nothing, sizeof(nothing), "");
	assert_comment(long_one, sizeof(long_one), "Rust 1.2.3-aaaaaaaaaaaaaaaaa");
	begin(&w, "", 0);
	toolchain_of(&w, text);
	assert_string_equal(text, "");
}

static void go_says_its_version(void **state)
{
	static const char cases[][2][32] = {
		{ "go1.21.3", "Go 1.21.3" },
		{ "go1.22rc1", "Go 1.22rc1" },
		{ "go1.24.1 X:nocoverageredesign", "Go 1.24.1" },
		{ "devel go1.25-8dce8bd Tue", "Go 1.25" },
		{ "devel +8dce8bd Tue", "Go" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		static const char comment[] = "GCC: (GNU) 12.2.0"; /* written by cgo's compiler */
		uint8_t blob[96] = "\xff Go buildinf:\x08\x02";
		char text[TOOLCHAIN_BYTES];
		struct elf_writer w;

		blob[32] = (uint8_t)strlen(cases[i][0]);
		memcpy(blob + 33, cases[i][0], strlen(cases[i][0]));
		begin(&w, comment, sizeof(comment));
		elf_writer_section(&w, &(struct elf_section_spec){ .name = ".go.buildinfo",
					       .flags = SHF_ALLOC | SHF_WRITE,
					       .address = BUILDINFO,
					       .bytes = blob,
					       .size = sizeof(blob) });
		toolchain_of(&w, text);
		assert_string_equal(text, cases[i][1]);
	}
}

static struct index *index_of(struct elf_writer *w)
{
	autoclose int fd = elf_writer_file(w), output = memory_file("", 0);
	struct sandbox_result result;
	struct index *index = NULL;

	elf_writer_deinit(w);
	assert_int_equal(builder_run(fd, output, &result), 0);
	assert_int_equal(index_open(output, &index), 0);
	return index;
}

static void the_index_tells(void **state)
{
	static const char comment[] = "GCC: (GNU) 12.2.0";
	struct index *index;
	struct elf_writer w;

	(void)state;
	begin(&w, comment, sizeof(comment));
	index = index_of(&w);
	assert_string_equal(index_toolchain(index), "GCC 12.2.0");
	assert_int_equal(index_kind(index), INDEX_STATIC | INDEX_STRIPPED);
	index_destroy(index);

	begin(&w, comment, sizeof(comment));
	elf_writer_segment(&w, &(Elf64_Phdr){ .p_type = PT_INTERP, .p_filesz = 1 });
	elf_writer_symbol(&w, &(struct elf_symbol_spec){ "main", 0x1000, 32, .section = 1 });
	index = index_of(&w);
	assert_int_equal(index_kind(index), 0);
	index_destroy(index);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(comments_of_compilers),
		cmocka_unit_test(comments_that_tell_nothing),
		cmocka_unit_test(go_says_its_version),
		cmocka_unit_test(the_index_tells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
