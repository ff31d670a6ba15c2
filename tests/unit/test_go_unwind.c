/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows of Go functions: ordinary, marked, and recognized by name. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "bpf/abi/runtime_go.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/indexer/go/go_unwind.h"
#include "symbolizer/index/index.h"
#include "symbolizer/index/unwind.h"
#include "tests/unit/gopclntab_writer.h"

enum { MAX_ROWS = 16, TOP_FRAME = 1, WRITES_SP = 2, ASSEMBLY = 4, BUILD_INFO_BYTES = 64 };

static struct gopclntab_writer w;

struct row {
	uint64_t low, high;
	struct abi_unwind_rule rule;
};

static struct row rows[MAX_ROWS];
static size_t row_count;

static int setup(void **state)
{
	(void)state;
	gopclntab_writer_init(&w, 20);
	row_count = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gopclntab_writer_deinit(&w);
	return 0;
}

/* A function as compilers make them since 1.21: push, sub; add, pop, ret. */
static const struct gopclntab_table_part usual[] = { { 4, 0 }, { 8, 8 }, { 20, 40 }, { 4, 8 },
	{ 4, 0 } };

static void add(uint32_t entry, const char *name, uint8_t flags, uint32_t pcsp)
{
	gopclntab_writer_function(&w, &(struct gopclntab_function_spec){
					      .entry = entry,
					      .name = gopclntab_writer_name(&w, name),
					      .flags = flags,
					      .pcsp = pcsp,
					      .tree = GO_NO_TREE,
				      });
}

static uint32_t usual_table(void)
{
	return gopclntab_writer_table(&w, usual, ARRAY_SIZE(usual));
}

static void put_row(void *context, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule)
{
	(void)context;
	assert_true(row_count < MAX_ROWS);
	rows[row_count++] = (struct row){ low - GO_TEXT, high - GO_TEXT, *rule };
}

/* The rows of function NUMBER of the file. */
static int read_rows(uint32_t number)
{
	autoclose int fd = gopclntab_writer_file(&w, 0x100);
	struct gopclntab_function f;
	struct elf_image *image;
	struct gopclntab table;
	struct go_unwind go;
	int err;

	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(gopclntab_find(image, &table), 0);
	assert_int_equal(gopclntab_function(&table, number, &f), 0);
	go_unwind_init(&go, &table);
	err = go_unwind_function(&go, &f, put_row, NULL);
	go_unwind_deinit(&go);
	elf_image_destroy(image);
	return err;
}

/* All rows of one function at entry 0x20. */
static void read_function(const char *name, uint8_t flags)
{
	add(0x20, name, flags, usual_table());
	assert_int_equal(read_rows(0), 0);
}

static void expect_row(size_t number, uint64_t low, uint64_t high, int cfa, int offset)
{
	assert_true(number < row_count);
	assert_int_equal(rows[number].low, low);
	assert_int_equal(rows[number].high, high);
	assert_int_equal(rows[number].rule.cfa, cfa);
	assert_int_equal(rows[number].rule.cfa_off, offset);
}

/* All rows are of kind CFA. */
static void expect_all(int cfa)
{
	assert_true(row_count);
	for (size_t i = 0; i < row_count; i++)
		assert_int_equal(rows[i].rule.cfa, cfa);
}

static void usual_function_is_unwound_by_its_stack_pointer(void **state)
{
	static const unsigned int formats[] = { 16, 18, 20 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		gopclntab_writer_deinit(&w);
		gopclntab_writer_init(&w, formats[i]);
		row_count = 0;
		read_function("main.work", 0);
		assert_int_equal(row_count, 5);
		expect_row(0, 0x20, 0x24, ABI_CFA_SP, 8);
		expect_row(1, 0x24, 0x2c, ABI_CFA_SP, 16);
		expect_row(2, 0x2c, 0x40, ABI_CFA_SP, 48);
		expect_row(3, 0x40, 0x44, ABI_CFA_SP, 16);
		expect_row(4, 0x44, 0x48, ABI_CFA_SP, 8);
		assert_int_equal(rows[2].rule.fp, ABI_REG_FRAME);
		assert_int_equal(rows[2].rule.fp_off, -16);
		assert_int_equal(rows[2].rule.ra, ABI_REG_AT_CFA);
		assert_int_equal(rows[2].rule.ra_off, -8);
	}
}

static void return_address_of_aarch64_is_in_a_register_first(void **state)
{
	static const struct gopclntab_table_part parts[] = { { 8, 0 }, { 8, 64 }, { 8, 40000 } };

	(void)state;
	w.elf.machine = EM_AARCH64;
	w.quantum = 4;
	add(0x20, "main.work", 0, gopclntab_writer_table(&w, parts, ARRAY_SIZE(parts)));
	assert_int_equal(read_rows(0), 0);
	expect_row(0, 0x20, 0x28, ABI_CFA_SP, 0);
	assert_int_equal(rows[0].rule.ra, ABI_REG_SAME);
	assert_int_equal(rows[0].rule.fp, ABI_REG_SAME);
	expect_row(1, 0x28, 0x30, ABI_CFA_SP, 64);
	assert_int_equal(rows[1].rule.ra, ABI_REG_AT_CFA);
	assert_int_equal(rows[1].rule.ra_off, -64);
	assert_int_equal(rows[1].rule.fp, ABI_REG_FRAME);
	assert_int_equal(rows[1].rule.fp_off, -72);
	/* Its offsets do not fit. */
	expect_row(2, 0x30, 0x38, ABI_CFA_NONE, 0);
}

static void cgocall_of_aarch64_has_a_frame(void **state)
{
	static const struct gopclntab_table_part parts[] = { { 12, 0 }, { 40, 16 } };

	(void)state;
	w.elf.machine = EM_AARCH64;
	w.quantum = 4;
	add(0x20, "runtime.asmcgocall", WRITES_SP, gopclntab_writer_table(&w, parts, 2));
	assert_int_equal(read_rows(0), 0);
	expect_row(1, 0x2c, 0x54, ABI_CFA_GO_CGOCALL, 16);
	assert_int_equal(rows[1].rule.fp, ABI_REG_AT_CFA);
	assert_int_equal(rows[1].rule.fp_off, -24);
	assert_int_equal(rows[1].rule.ra_off, -16);
}

/* The row of crosscall2 once it has lowered the stack pointer by 192, and then executed the
 * instruction WORD.
 */
static struct abi_unwind_rule rule_of_crosscall2(uint32_t word)
{
	static const struct gopclntab_table_part parts[] = { { 4, 0 }, { 40, 192 } };
	static uint8_t code[GO_TEXT_SIZE];

	gopclntab_writer_deinit(&w);
	gopclntab_writer_init(&w, 20);
	row_count = 0;
	memset(code, 0, sizeof(code));
	memcpy(code + 0x2c, &word, sizeof(word));
	w.elf.machine = EM_AARCH64;
	w.quantum = 4;
	w.code = code;
	add(0x20, "crosscall2", 0, gopclntab_writer_table(&w, parts, ARRAY_SIZE(parts)));
	assert_int_equal(read_rows(0), 0);
	assert_true(row_count == 2);
	return rows[1].rule;
}

static void crosscall2_of_aarch64_saves_registers_as_c(void **state)
{
	struct abi_unwind_rule rule = rule_of_crosscall2(0xa90b7bfd); /* stp x29,x30,[sp,#176] */

	(void)state;
	assert_int_equal(rule.cfa, ABI_CFA_SP);
	assert_int_equal(rule.cfa_off, 192);
	assert_int_equal(rule.fp, ABI_REG_AT_CFA);
	assert_int_equal(rule.fp_off, -16);
	assert_int_equal(rule.ra_off, -8);
	rule = rule_of_crosscall2(0xf9003bfd); /* str x29,[sp,#112] */
	assert_int_equal(rule.fp_off, -80);
	assert_int_equal(rule.ra_off, -72);
	assert_int_equal(rule_of_crosscall2(0xf9005ffd).cfa, ABI_CFA_NONE); /* no room for both */
	assert_int_equal(rule_of_crosscall2(0).cfa, ABI_CFA_NONE);
}

static void crosscall2_of_x86_64_is_an_ordinary_function(void **state)
{
	(void)state;
	read_function("crosscall2", 0);
	expect_all(ABI_CFA_SP);
	assert_int_equal(rows[1].rule.fp, ABI_REG_FRAME);
}

static void function_without_a_caller_is_the_root(void **state)
{
	(void)state;
	read_function("runtime.something", TOP_FRAME);
	expect_all(ABI_CFA_END);
}

static void roots_of_1_16_are_known_by_name(void **state)
{
	static const char *const names[] = { "runtime.goexit", "runtime.mstart", "runtime.rt0_go" };

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		gopclntab_writer_deinit(&w);
		gopclntab_writer_init(&w, 16);
		row_count = 0;
		read_function(names[i], 0);
		expect_all(ABI_CFA_END);
	}
}

static void switches_are_known_by_name(void **state)
{
	static const struct {
		const char *name;
		int cfa;
	} known[] = {
		{ "runtime.systemstack", ABI_CFA_GO_SYSTEMSTACK },
		{ "runtime.systemstack.abi0", ABI_CFA_GO_SYSTEMSTACK },
		{ "runtime.morestack", ABI_CFA_GO_MORESTACK },
		{ "runtime.mcall", ABI_CFA_GO_MCALL },
		{ "runtime.gopreempt_m", ABI_CFA_GO_MCALL },
		{ "runtime.goschedImpl", ABI_CFA_GO_MCALL },
		{ "gogo", ABI_CFA_GO_GOGO },
		{ "racecall", ABI_CFA_GO_RACECALL },
		{ "runtime.racecall", ABI_CFA_SP },
		{ "runtime.sigreturn", ABI_CFA_SIGNAL },
		{ "runtime.sigreturn__sigaction", ABI_CFA_SIGNAL },
		{ "runtime.systemstack_switch", ABI_CFA_SP },
		{ "runtime.morestack_noctxt", ABI_CFA_SP },
		{ "main.mcall", ABI_CFA_SP },
	};

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(known); i++) {
		gopclntab_writer_deinit(&w);
		gopclntab_writer_init(&w, 20);
		row_count = 0;
		read_function(known[i].name, 0);
		expect_all(known[i].cfa);
	}
}

static void switch_with_a_frame_is_found_by_it(void **state)
{
	(void)state;
	read_function("runtime.somethingOnTheSystemStack", WRITES_SP);
	assert_int_equal(row_count, 5);
	expect_row(0, 0x20, 0x24, ABI_CFA_SP, 8);
	/* While the frame is being set up, the frame pointer is still the caller's. */
	expect_row(1, 0x24, 0x2c, ABI_CFA_SP, 16);
	expect_row(2, 0x2c, 0x40, ABI_CFA_GO_FRAME, 16);
	assert_int_equal(rows[2].rule.fp, ABI_REG_AT_CFA);
	assert_int_equal(rows[2].rule.fp_off, -16);
	expect_row(3, 0x40, 0x44, ABI_CFA_GO_FRAME, 16);
	expect_row(4, 0x44, 0x48, ABI_CFA_SP, 8);
}

static void long_opening_is_cut_after_the_frame_pointer_was_set(void **state)
{
	static const struct gopclntab_table_part parts[] = { { 4, 0 }, { 40, 16 }, { 1, 0 } };

	(void)state;
	add(0x20, "runtime.nanotime1", 0, gopclntab_writer_table(&w, parts, ARRAY_SIZE(parts)));
	assert_int_equal(read_rows(0), 0);
	assert_int_equal(row_count, 4);
	expect_row(1, 0x24, 0x2e, ABI_CFA_SP, 24);
	expect_row(2, 0x2e, 0x4c, ABI_CFA_GO_FRAME, 16);
}

static void cgocall_without_a_frame_saves_its_stack_depth(void **state)
{
	static const struct gopclntab_table_part parts[] = { { 40, 0 } };

	(void)state;
	add(0x20, "runtime.asmcgocall", WRITES_SP, gopclntab_writer_table(&w, parts, 1));
	assert_int_equal(read_rows(0), 0);
	assert_int_equal(row_count, 1);
	expect_row(0, 0x20, 0x48, ABI_CFA_GO_CGOCALL, 8);
	assert_int_equal(rows[0].rule.extra, 40);
}

/* The row of asmcgocall once it has a frame, with CODE at 0x30. */
static struct row framed_cgocall(const uint8_t *bytes, size_t size)
{
	static const struct gopclntab_table_part parts[] = { { 1, 0 }, { 39, 8 } };
	static uint8_t code[GO_TEXT_SIZE];

	gopclntab_writer_deinit(&w);
	gopclntab_writer_init(&w, 20);
	row_count = 0;
	memset(code, 0x90, sizeof(code));
	memcpy(code + 0x30, bytes, size);
	w.code = code;
	add(0x20, "runtime.asmcgocall", WRITES_SP, gopclntab_writer_table(&w, parts, 2));
	assert_int_equal(read_rows(0), 0);
	assert_true(row_count >= 2);
	return rows[row_count - 1];
}

/* While C runs, the goroutine's stack may move: its frame pointer is stale then. */
static void cgocall_with_a_frame_saves_its_stack_depth(void **state)
{
	static const uint8_t offsets[] = { 8, 0x30, 0x78 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		const uint8_t code[] = { 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x89, 0x7c, 0x24,
			offsets[i] };
		struct abi_unwind_rule rule = framed_cgocall(code, sizeof(code)).rule;

		assert_int_equal(rule.cfa, ABI_CFA_GO_CGOCALL);
		assert_int_equal(rule.cfa_off, 16);
		assert_int_equal(rule.extra, offsets[i] - 8);
		assert_int_equal(rule.fp, ABI_REG_AT_CFA);
		assert_int_equal(rule.fp_off, -16);
		assert_int_equal(rule.ra_off, -8);
	}
}

/* Until 1.20 C returns to it with a frame pointer that may be stale; it has saved its caller's. */
static void cgocall_reloads_the_frame_pointer(void **state)
{
	static const struct gopclntab_table_part parts[] = { { 4, 0 }, { 36, 56 } };

	(void)state;
	add(0x20, "runtime.cgocall", 0, gopclntab_writer_table(&w, parts, 2));
	assert_int_equal(read_rows(0), 0);
	assert_int_equal(row_count, 3);
	expect_row(0, 0x20, 0x24, ABI_CFA_SP, 8);
	assert_int_equal(rows[0].rule.fp, ABI_REG_FRAME);
	expect_row(1, 0x24, 0x2e, ABI_CFA_SP, 64);
	assert_int_equal(rows[1].rule.fp, ABI_REG_FRAME);
	expect_row(2, 0x2e, 0x48, ABI_CFA_SP, 64);
	assert_int_equal(rows[2].rule.fp, ABI_REG_AT_CFA);
	assert_int_equal(rows[2].rule.fp_off, -16);
}

/* Code of another form: by the frame pointer. */
static void cgocall_that_saves_elsewhere(void **state)
{
	static const uint8_t bad[][9] = {
		{ 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x89, 0x7c, 0x24, 0 },
		{ 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x89, 0x7c, 0x24, 12 },
		{ 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x89, 0x7c, 0x24, 0xf8 },
		{ 0x48, 0x83, 0xe4, 0xf0, 0x48, 0x89, 0x54, 0x24, 8 },
		{ 0x90 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct abi_unwind_rule rule = framed_cgocall(bad[i], sizeof(bad[i])).rule;

		assert_int_equal(rule.cfa, ABI_CFA_GO_FRAME);
		assert_int_equal(rule.cfa_off, 16);
	}
}

static void interrupted_code_did_not_call(void **state)
{
	(void)state;
	read_function("runtime.asyncPreempt", 0);
	expect_all(ABI_CFA_SP);
	assert_int_equal(rows[0].rule.extra, ABI_UNWIND_INTERRUPTED);
	row_count = 0;
	gopclntab_writer_deinit(&w);
	gopclntab_writer_init(&w, 20);
	read_function("runtime.sigtramp", TOP_FRAME);
	expect_all(ABI_CFA_SP);
}

static void signal_returns_to_the_first_byte(void **state)
{
	(void)state;
	read_function("runtime.sigreturn", 0);
	assert_int_equal(rows[0].low, 0x1f);
}

static void function_of_c_has_no_rows(void **state)
{
	(void)state;
	add(0x20, "x_cgo_init", 0, 0);
	assert_int_equal(read_rows(0), 0);
	assert_int_equal(row_count, 0);
}

static void impossible_depths_have_no_rule(void **state)
{
	static const struct gopclntab_table_part parts[] = { { 8, -8 }, { 8, 12 },
		{ 8, 0x7fffffff }, { 8, 16 } };

	(void)state;
	add(0x20, "main.work", 0, gopclntab_writer_table(&w, parts, ARRAY_SIZE(parts)));
	assert_int_equal(read_rows(0), 0);
	expect_row(0, 0x20, 0x28, ABI_CFA_NONE, 0);
	expect_row(1, 0x28, 0x30, ABI_CFA_NONE, 0);
	expect_row(2, 0x30, 0x38, ABI_CFA_NONE, 0);
	expect_row(3, 0x38, 0x40, ABI_CFA_SP, 24);
}

/* The build information of Go 1.MINOR. */
static void add_version(const char *text, uint8_t *blob)
{
	memset(blob, 0, BUILD_INFO_BYTES);
	memcpy(blob, "\xff Go buildinf:", 14);
	blob[14] = 8;
	blob[15] = 2;
	blob[32] = (uint8_t)strlen(text);
	memcpy(blob + 33, text, strlen(text));
	elf_writer_section(&w.elf, &(struct elf_section_spec){ .name = ".go.buildinfo",
					   .flags = SHF_ALLOC | SHF_WRITE,
					   .address = 0x700000,
					   .bytes = blob,
					   .size = BUILD_INFO_BYTES });
}

static uint8_t extra_of(const char *version, const char *name, uint8_t flags)
{
	uint8_t blob[BUILD_INFO_BYTES];

	gopclntab_writer_deinit(&w);
	gopclntab_writer_init(&w, 20);
	row_count = 0;
	add_version(version, blob);
	read_function(name, flags);
	return rows[0].rule.extra;
}

static void compiled_functions_have_frames_since_1_21(void **state)
{
	(void)state;
	assert_int_equal(extra_of("go1.21.3", "main.work", 0), ABI_UNWIND_FRAMED);
	assert_int_equal(extra_of("go1.20.14", "main.work", 0), 0);
	assert_int_equal(extra_of("devel +8dce8bd", "main.work", 0), 0);
	assert_int_equal(extra_of("go1.21.3", "runtime.memmove", ASSEMBLY), 0);
	assert_int_equal(extra_of("go1.21.3", "runtime.goschedImpl", 0), 0);
	assert_int_equal(extra_of("go1.21.3", "runtime.morestack", WRITES_SP), 0);
	assert_int_equal(rows[0].rule.fp, ABI_REG_UNDEFINED);
}

static void table_outside_of_the_file_is_broken(void **state)
{
	(void)state;
	add(0x20, "main.work", 0, 0x7ffffff0);
	assert_int_equal(read_rows(0), -EBADMSG);
	assert_int_equal(row_count, 0);
}

static int cfa_at(const struct index *index, uint64_t offset, int *ret_offset)
{
	const struct abi_unwind_page *page;
	struct abi_unwind_rule rule;
	size_t size;

	assert_true(index_unwind_page(index, GO_TEXT + offset, &page, &size));
	assert_true(unwind_rule_at(page, size, (GO_TEXT + offset) & 0xffff, &rule));
	*ret_offset = rule.cfa_off;
	return rule.cfa;
}

static void index_has_the_rows_of_all_functions(void **state)
{
	autoclose int fd = -1, output = memfd_create("index", MFD_CLOEXEC);
	struct sandbox_result result;
	struct index *index = NULL;
	int offset;

	(void)state;
	add(0x00, "main.first", 0, usual_table()); /* its code ends at 0x28 */
	add(0x30, "runtime.goexit", 0, usual_table());
	add(0x60, "main.broken", 0, 0x7ffffff0);
	add(0x80, "main.last", 0, usual_table());
	fd = gopclntab_writer_file(&w, 0x100);
	assert_int_equal(builder_run(fd, output, &result), 0);
	assert_int_equal(index_open(output, &index), 0);
	assert_int_equal(cfa_at(index, 0x00, &offset), ABI_CFA_SP);
	assert_int_equal(offset, 8);
	assert_int_equal(cfa_at(index, 0x10, &offset), ABI_CFA_SP);
	assert_int_equal(offset, 48);
	assert_int_equal(cfa_at(index, 0x28, &offset), ABI_CFA_NONE);
	assert_int_equal(cfa_at(index, 0x30, &offset), ABI_CFA_END);
	assert_int_equal(cfa_at(index, 0x60, &offset), ABI_CFA_NONE);
	assert_int_equal(cfa_at(index, 0x90, &offset), ABI_CFA_SP);
	assert_int_equal(offset, 48);
	assert_int_equal(cfa_at(index, 0xb0, &offset), ABI_CFA_NONE);
	assert_int_equal(index_unwind_figures(index)->broken, 1);
	index_destroy(index);
}

#define GO_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GO_TEST(usual_function_is_unwound_by_its_stack_pointer),
		GO_TEST(return_address_of_aarch64_is_in_a_register_first),
		GO_TEST(cgocall_of_aarch64_has_a_frame),
		GO_TEST(crosscall2_of_aarch64_saves_registers_as_c),
		GO_TEST(crosscall2_of_x86_64_is_an_ordinary_function),
		GO_TEST(function_without_a_caller_is_the_root),
		GO_TEST(roots_of_1_16_are_known_by_name),
		GO_TEST(switches_are_known_by_name),
		GO_TEST(switch_with_a_frame_is_found_by_it),
		GO_TEST(long_opening_is_cut_after_the_frame_pointer_was_set),
		GO_TEST(cgocall_without_a_frame_saves_its_stack_depth),
		GO_TEST(cgocall_with_a_frame_saves_its_stack_depth),
		GO_TEST(cgocall_reloads_the_frame_pointer),
		GO_TEST(cgocall_that_saves_elsewhere),
		GO_TEST(interrupted_code_did_not_call),
		GO_TEST(signal_returns_to_the_first_byte),
		GO_TEST(function_of_c_has_no_rows),
		GO_TEST(impossible_depths_have_no_rule),
		GO_TEST(compiled_functions_have_frames_since_1_21),
		GO_TEST(table_outside_of_the_file_is_broken),
		GO_TEST(index_has_the_rows_of_all_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
