/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol tables as a source of the index. */
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/symbols.h"
#include "tests/unit/small_index.h"

/* The index of the file's symbols, with a text of TEXT_SIZE bytes at TEXT, section 1. */
static struct index *index_of(struct elf_writer *elf, const struct source_range *skip)
{
	struct index_writer *w = create();
	struct elf_image *image = NULL;
	autoclose int fd = elf_writer_file(elf);

	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(symbols_read(image, skip, w), 0);
	elf_image_destroy(image);
	elf_writer_deinit(elf);
	return finish(w);
}

static void begin(struct elf_writer *elf)
{
	elf_writer_init(elf);
	assert_int_equal(elf_writer_code(elf, ".text", TEXT, TEXT_SIZE), 1);
}

static void add(struct elf_writer *elf, const char *name, uint64_t low, uint64_t size, uint8_t bind)
{
	elf_writer_symbol(elf, &(struct elf_symbol_spec){ .name = name,
				       .address = TEXT + low,
				       .size = size,
				       .section = 1,
				       .bind = bind });
}

static void test_both_tables(void **)
{
	struct elf_writer elf;
	struct index *index;

	begin(&elf);
	add(&elf, "static_one", 0x10, 0x10, STB_LOCAL);
	elf_writer_symbol(&elf, &(struct elf_symbol_spec){ .name = "exported",
					.address = TEXT + 0x40,
					.size = 0x10,
					.section = 1,
					.bind = STB_GLOBAL,
					.dynamic = true });
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0x10), "static_one");
	assert_string_equal(names(index, 0x4f), "exported");
	assert_int_equal(index_sources(index), INDEX_SOURCE_SYMTAB | INDEX_SOURCE_DYNSYM);
	index_destroy(index);
}

static void test_the_return_of_a_signal_handler_on_aarch64_has_the_name(void **)
{
	struct elf_writer elf;
	struct index *index;

	begin(&elf);
	elf.machine = EM_AARCH64;
	add(&elf, "__kernel_rt_sigreturn", 0x20, 8, STB_GLOBAL);
	add(&elf, "another", 0x40, 8, STB_GLOBAL);
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0x1f), "__kernel_rt_sigreturn");
	assert_string_equal(names(index, 0x1c), "__kernel_rt_sigreturn");
	assert_string_equal(names(index, 0x27), "__kernel_rt_sigreturn");
	assert_string_equal(names(index, 0x1b), "");
	assert_string_equal(names(index, 0x28), "");
	assert_string_equal(names(index, 0x3f), "");
	index_destroy(index);
	begin(&elf);
	add(&elf, "__kernel_rt_sigreturn", 0x20, 8, STB_GLOBAL);
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0x1f), "");
	index_destroy(index);
}

static void test_versions_are_cut(void **)
{
	struct elf_writer elf;
	struct index *index;

	begin(&elf);
	add(&elf, "memcpy@@GLIBC_2.14", 0, 0x10, STB_GLOBAL);
	add(&elf, "_ZN3foo3barEi@V_1", 0x10, 0x10, STB_GLOBAL);
	add(&elf, "@odd", 0x20, 0x10, STB_GLOBAL);
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0), "memcpy");
	assert_string_equal(names(index, 0x10), "foo::bar(int)");
	assert_string_equal(names(index, 0x20), "@odd");
	index_destroy(index);
}

static void test_what_is_no_function(void **)
{
	struct elf_writer elf;
	struct index *index;

	begin(&elf);
	elf_writer_section(&elf, &(struct elf_section_spec){ .name = ".data",
					 .flags = SHF_ALLOC | SHF_WRITE,
					 .address = TEXT + TEXT_SIZE,
					 .size = 0x100 });
	for (int i = 0; i < 6; i++) {
		static const struct elf_symbol_spec odd[] = {
			{ .name = "a.c", .section = 1, .type = STT_FILE },
			{ .name = "section", .section = 1, .type = STT_SECTION },
			{ .name = "undefined", .section = SHN_UNDEF },
			{ .name = "absolute", .section = SHN_ABS },
			{ .name = "in_data", .section = 2 },
			{ .name = "no_section", .section = 77 },
		};
		struct elf_symbol_spec symbol = odd[i];

		symbol.address = TEXT;
		symbol.size = 0x10;
		elf_writer_symbol(&elf, &symbol);
	}
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0), "");
	index_destroy(index);
}

/* GHC says of functions that they are objects. Elsewhere a function at the address is better. */
static void test_objects_in_code(void **)
{
	struct elf_writer elf;
	struct index *index;

	begin(&elf);
	for (uint64_t i = 0; i < 2; i++)
		elf_writer_symbol(&elf, &(struct elf_symbol_spec){ .name = "object_info",
						.address = TEXT + 0x10 + 0x10 * i,
						.size = 0x10,
						.section = 1,
						.bind = STB_GLOBAL,
						.type = STT_OBJECT });
	add(&elf, "function", 0x20, 0x10, STB_LOCAL);
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0x1f), "object_info");
	assert_string_equal(names(index, 0x2f), "function");
	assert_string_equal(names(index, 0x30), "");
	index_destroy(index);
}

/* In a stripped file other functions may follow, whose symbols are gone. */
static void test_label_of_a_stripped_file_ends_nowhere(void **)
{
	struct elf_writer elf;
	struct index *index;

	begin(&elf);
	elf_writer_symbol(&elf, &(struct elf_symbol_spec){ .name = "label",
					.address = TEXT + 0x10,
					.section = 1,
					.bind = STB_GLOBAL,
					.notype = true,
					.dynamic = true });
	elf_writer_symbol(&elf, &(struct elf_symbol_spec){ .name = "sized",
					.address = TEXT + 0x40,
					.size = 0x10,
					.section = 1,
					.bind = STB_GLOBAL,
					.notype = true,
					.dynamic = true });
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0x10), "");
	assert_string_equal(names(index, 0x30), "");
	assert_string_equal(names(index, 0x4f), "sized");
	index_destroy(index);
}

static void test_labels_and_mapping_symbols(void **)
{
	static const char *const labels[] = { "$x", "$d.12", ".L7", ".Lloop" };
	struct elf_writer elf;
	struct index *index;

	begin(&elf);
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		elf_writer_symbol(&elf, &(struct elf_symbol_spec){ .name = labels[i],
						.address = TEXT + 0x10,
						.section = 1,
						.notype = true });
	elf_writer_symbol(&elf,
		&(struct elf_symbol_spec){
			.name = "entry", .address = TEXT + 0x20, .section = 1, .notype = true });
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0x10), "");
	assert_string_equal(names(index, 0x20), "entry");
	index_destroy(index);
}

static void test_size_0_ends_with_its_section(void **)
{
	struct elf_writer elf;
	struct index *index;

	elf_writer_init(&elf);
	elf_writer_code(&elf, ".init", TEXT, 0x20);
	elf_writer_code(&elf, ".text", TEXT + 0x20, 0x20);
	add(&elf, "_init", 0, 0, STB_GLOBAL);
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0x1f), "_init");
	assert_string_equal(names(index, 0x20), "");
	index_destroy(index);
}

static void test_end_label_of_a_section_is_not_the_next_one(void **)
{
	struct elf_writer elf;
	struct index *index;

	elf_writer_init(&elf);
	elf_writer_code(&elf, ".text", TEXT, 0x20);
	elf_writer_code(&elf, ".fini", TEXT + 0x20, 0x20);
	elf_writer_symbol(&elf,
		&(struct elf_symbol_spec){
			.name = "etext", .address = TEXT + 0x20, .section = 1, .notype = true });
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0x20), "");
	index_destroy(index);
}

/* Other code may follow in the same section: C's behind Go's. */
static void test_mark_of_the_end_of_code_names_nothing(void **)
{
	static const char *const marks[] = { "etext", "_etext", "__etext", "runtime.etext" };

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		struct elf_writer elf;
		struct index *index;

		begin(&elf);
		add(&elf, "before", 0, 0x10, STB_GLOBAL);
		add(&elf, marks[i], 0x10, 0, STB_GLOBAL);
		add(&elf, "behind", 0x20, 0x10, STB_GLOBAL);
		index = index_of(&elf, NULL);
		assert_string_equal(names(index, 0xf), "before");
		assert_string_equal(names(index, 0x10), "");
		assert_string_equal(names(index, 0x20), "behind");
		index_destroy(index);
	}
}

static void test_skipped_range(void **)
{
	struct source_range skip = { TEXT + 0x10, TEXT + 0x20 };
	struct elf_writer elf;
	struct index *index;

	begin(&elf);
	add(&elf, "before", 0, 0x10, STB_GLOBAL);
	add(&elf, "inside", 0x10, 0x10, STB_GLOBAL);
	add(&elf, "behind", 0x20, 0x10, STB_GLOBAL);
	index = index_of(&elf, &skip);
	assert_string_equal(names(index, 0x0f), "before");
	assert_string_equal(names(index, 0x10), "");
	assert_string_equal(names(index, 0x20), "behind");
	index_destroy(index);
}

static void test_symbol_without_size_ends_at_skipped_range(void **)
{
	struct source_range skip = { TEXT + 0x20, TEXT + 0x40 };
	struct elf_writer elf;
	struct index *index;
	uint32_t section;

	elf_writer_init(&elf);
	section = elf_writer_code(&elf, ".text", TEXT, 0x100);
	elf_writer_symbol(
		&elf, &(struct elf_symbol_spec){ "before", TEXT + 0x10, 0, .section = section });
	index = index_of(&elf, &skip);
	assert_string_equal(names(index, 0x1f), "before");
	assert_string_equal(names(index, 0x20), "");
	assert_string_equal(names(index, 0x3f), "");
	index_destroy(index);
}

static void test_names_outside_the_string_table(void **)
{
	struct elf_writer elf;
	struct index *index;
	Elf64_Sym *symbols;

	begin(&elf);
	add(&elf, "good", 0, 0x10, STB_GLOBAL);
	add(&elf, "bad", 0x10, 0x10, STB_GLOBAL);
	symbols = (Elf64_Sym *)(void *)elf.symbols[0].bytes;
	symbols[2].st_name = UINT32_MAX;
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0), "good");
	assert_string_equal(names(index, 0x10), "");
	index_destroy(index);
}

static void test_sizes_that_overflow(void **)
{
	struct elf_writer elf;
	struct index *index;

	begin(&elf);
	add(&elf, "endless", 0x10, UINT64_MAX, STB_GLOBAL);
	add(&elf, "long", 0x20, UINT64_C(1) << 40, STB_GLOBAL);
	index = index_of(&elf, NULL);
	assert_string_equal(names(index, 0x10), "");
	assert_string_equal(names(index, 0x20), "long");
	assert_string_equal(names(index, TEXT_SIZE - 1), "long");
	assert_string_equal(names(index, TEXT_SIZE), "");
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_tables),
		cmocka_unit_test(test_the_return_of_a_signal_handler_on_aarch64_has_the_name),
		cmocka_unit_test(test_versions_are_cut),
		cmocka_unit_test(test_what_is_no_function),
		cmocka_unit_test(test_objects_in_code),
		cmocka_unit_test(test_label_of_a_stripped_file_ends_nowhere),
		cmocka_unit_test(test_labels_and_mapping_symbols),
		cmocka_unit_test(test_size_0_ends_with_its_section),
		cmocka_unit_test(test_end_label_of_a_section_is_not_the_next_one),
		cmocka_unit_test(test_mark_of_the_end_of_code_names_nothing),
		cmocka_unit_test(test_skipped_range),
		cmocka_unit_test(test_symbol_without_size_ends_at_skipped_range),
		cmocka_unit_test(test_names_outside_the_string_table),
		cmocka_unit_test(test_sizes_that_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
