/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed call frame information: a broken entry costs itself and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/bytes.h"
#include "tests/unit/cfi_writer.h"

static const char entry[] = "sp+8 fp=same ra=[cfa-8]";

static struct cfi_writer w;
static struct index *made;

static int begin(void **)
{
	cfi_writer_init(&w, EM_X86_64);
	return 0;
}

static int end(void **)
{
	cfi_writer_deinit(&w);
	index_destroy(made);
	made = NULL;
	return 0;
}

static const char *rule_at(uint64_t offset)
{
	if (!made)
		made = cfi_writer_index(&w, NULL);
	return cfi_rule_at(made, CFI_TEXT + offset);
}

static uint32_t broken(void)
{
	rule_at(0);
	return index_unwind_figures(made)->broken;
}

/* A good function after whatever the test wrote: is it still found? */
static void add_good(void)
{
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT + 0x1000, 16, NO_CODE);
}

static void assert_good(void)
{
	assert_string_equal(rule_at(0x1000), entry);
}

/* A function with these instructions: rows up to the invalid one, then nothing. */
static void broken_code(const uint8_t *code, size_t size)
{
	uint8_t all[64] = { DEF_CFA_OFFSET(16), ADVANCE(8), DEF_CFA_OFFSET(24) };

	begin(NULL);
	memcpy(all + 5, code, size);
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 64, all, 5 + size);
	add_good();
	assert_string_equal(rule_at(0), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(8), "none");
	assert_int_equal(broken(), 1);
	assert_good();
	end(NULL);
}

static void instructions_that_make_no_sense(void **)
{
	broken_code(CFI(0x3f)); /* unknown */
	broken_code(CFI(0x17));
	broken_code(CFI(RESTORE_STATE)); /* nothing remembered */
	broken_code(CFI(0x0f, 60)); /* a block beyond the entry */
	broken_code(CFI(0x10, 6, 60));
	broken_code(CFI(0x01, 0, 0, 0, 0x80)); /* set_loc far back */
	broken_code(CFI(0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)); /* wraps */
}

static void code_that_is_cut_off(void **)
{
	uint64_t cie = cfi_writer_usual_cie(&w);
	size_t at = w.bytes.size;

	/* Aligned to 8 by itself: length, id, low, range, augmentation, and 7 bytes of code. */
	cfi_writer_fde(&w, cie, CFI_TEXT, 64, CFI(ADVANCE(8), 0, 0, 0, 0, 0, 0x04));
	assert_int_equal(w.bytes.size - at, 24);
	add_good();
	assert_string_equal(rule_at(0), entry);
	assert_string_equal(rule_at(8), "none");
	assert_int_equal(broken(), 1);
	assert_good();
}

static void remembering_without_end(void **)
{
	uint8_t code[1000];

	memset(code, REMEMBER, sizeof(code));
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 16, code, sizeof(code));
	add_good();
	assert_int_equal(broken(), 1);
	assert_good();
}

static void advancing_without_end(void **)
{
	enum { COUNT = 100000 };
	static uint8_t code[COUNT * 5];
	uint64_t cie = cfi_writer_usual_cie(&w);

	for (size_t i = 0; i < COUNT; i++)
		memcpy(code + i * 5, (const uint8_t[]){ ADVANCE4(0x40000000) }, 5);
	cfi_writer_fde(&w, cie, CFI_TEXT, 0xffffffff, code, sizeof(code));
	cfi_writer_fde(&w, cie, CFI_TEXT + 0x2000, 16, CFI(ADVANCE(63), ADVANCE(63)));
	add_good();
	assert_string_equal(rule_at(0), entry);
	assert_good();
	assert_int_equal(broken(), 0);
	assert_string_equal(rule_at(0x2010), "none");
}

static void advancing_by_nothing(void **)
{
	static uint8_t code[100000];

	memset(code, ADVANCE(0), sizeof(code));
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 16, code, sizeof(code));
	assert_string_equal(rule_at(0), entry);
	assert_true(index_unwind_figures(made)->rows <= 2);
}

static void gigantic_ranges_end_with_the_code(void **)
{
	w.debug = true;
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT + 0x100, UINT64_MAX, NO_CODE);
	assert_string_equal(rule_at(0), "none");
	assert_string_equal(rule_at(0x100), entry);
	assert_string_equal(rule_at(CFI_TEXT_SIZE - 1), entry);
	assert_string_equal(rule_at(CFI_TEXT_SIZE), "none");
	assert_int_equal(index_unwind_page_count(made), (CFI_TEXT_SIZE >> 16) + 1);
}

static void empty_ranges_and_functions_outside_of_the_code(void **)
{
	uint64_t cie = cfi_writer_usual_cie(&w);

	cfi_writer_fde(&w, cie, CFI_TEXT, 0, NO_CODE);
	cfi_writer_fde(&w, cie, 0, 0x10000, NO_CODE); /* discarded by the linker */
	cfi_writer_fde(&w, cie, CFI_TEXT - 16, 64, NO_CODE);
	add_good();
	assert_string_equal(rule_at(0), "none");
	assert_good();
	assert_int_equal(index_unwind_figures(made)->functions, 1);
	assert_int_equal(broken(), 0);
}

static void length_beyond_the_section(void **)
{
	add_good();
	cfi_writer_raw(&w, "", 0);
	set_u32(&w.bytes, w.bytes.size - 4, 0x7fffff00);
	assert_good();
	assert_int_equal(broken(), 1);
}

static void length_that_is_cut_off(void **)
{
	add_good();
	put_u16(&w.bytes, 7);
	assert_good();
	assert_int_equal(broken(), 1);
}

static void wide_length_beyond_the_section(void **)
{
	add_good();
	put_u32(&w.bytes, 0xffffffff);
	put_u64(&w.bytes, UINT64_MAX);
	assert_good();
	assert_int_equal(broken(), 1);
}

static void terminators_do_not_end_a_section(void **)
{
	put_u32(&w.bytes, 0);
	add_good();
	put_u32(&w.bytes, 0);
	assert_good();
	assert_int_equal(broken(), 0);
}

static void entries_too_short_for_an_id(void **)
{
	cfi_writer_raw(&w, "ab", 2);
	add_good();
	assert_good();
	assert_int_equal(broken(), 1);
}

static void fde_without_a_cie(void **)
{
	/* Its CIE would be: before the section, itself, another FDE, in the middle of a CIE. */
	uint64_t cie = cfi_writer_usual_cie(&w), fde = w.bytes.size;

	cfi_writer_fde(&w, cie, CFI_TEXT, 16, NO_CODE);
	cfi_writer_fde(&w, (uint64_t)-4000, CFI_TEXT + 0x20, 16, NO_CODE);
	cfi_writer_fde(&w, w.bytes.size, CFI_TEXT + 0x40, 16, NO_CODE);
	cfi_writer_fde(&w, fde, CFI_TEXT + 0x60, 16, NO_CODE);
	cfi_writer_fde(&w, cie + 1, CFI_TEXT + 0x80, 16, NO_CODE);
	add_good();
	assert_string_equal(rule_at(0), entry);
	for (uint64_t i = 1; i <= 4; i++)
		assert_string_equal(rule_at(i * 0x20), "none");
	assert_int_equal(broken(), 4);
	assert_good();
}

/* Regression: UINT64_MAX once matched the initial "last CIE seen". */
static void fde_whose_cie_is_at_the_end_of_all_addresses(void **)
{
	cfi_writer_fde(&w, UINT64_MAX, CFI_TEXT, 16, NO_CODE);
	add_good();
	assert_string_equal(rule_at(0), "none");
	assert_int_equal(broken(), 1);
	assert_good();
}

static void two_fdes_that_name_each_other(void **)
{
	uint64_t first = w.bytes.size, second = first + 24;

	cfi_writer_fde(&w, second, CFI_TEXT, 16, NO_CODE);
	assert_int_equal(w.bytes.size, second);
	cfi_writer_fde(&w, first, CFI_TEXT + 0x20, 16, NO_CODE);
	add_good();
	assert_int_equal(broken(), 2);
	assert_good();
}

/* A CIE made by hand of the bytes after its id, with one function. */
static void broken_cie(const void *bytes, size_t size)
{
	uint8_t all[64] = { 0 };
	uint64_t cie;

	begin(NULL);
	memcpy(all + 4, bytes, size);
	cie = w.bytes.size;
	cfi_writer_raw(&w, all, 4 + size);
	cfi_writer_fde(&w, cie, CFI_TEXT, 16, NO_CODE);
	add_good();
	assert_string_equal(rule_at(0), "none");
	assert_int_equal(broken(), 1);
	assert_good();
	end(NULL);
}

static void cies_that_make_no_sense(void **)
{
	broken_cie("", 0);
	broken_cie("\2\0\1\x78\x10", 5); /* version */
	broken_cie("\5\0\1\x78\x10", 5);
	broken_cie("\4\0\4\0\1\x78\x10", 7); /* addresses of 4 bytes */
	broken_cie("\4\0\10\1\1\x78\x10", 7); /* segments */
	broken_cie("\1zRabc", 6); /* a string without an end */
	broken_cie("\1R\0\1\x78\x10\x1b", 7); /* data without a size */
	broken_cie("\1zR\0\1\x78\x10\x7f", 8); /* and with too large a size */
	broken_cie("\1zR\0\1\x78\x10\0", 8); /* and with too small a one */
	broken_cie("\1zR\0\1\x78\x10\1\x1d", 9); /* an unknown format of pointers */
	broken_cie("\1zR\0\1\x78\x10\1\x9b", 9); /* pointers to pointers */
	broken_cie("\1zR\0\1\x78\x10\1\xff", 9); /* no pointers */
	broken_cie("\1zR\0\1\x78\x10\1\x6b", 9); /* relative to what? */
	broken_cie("\1zR\0\1\x78\x10\1\x3b", 9); /* relative to a data base that does not exist */
	broken_cie("\1zP\0\1\x78\x10\2\x1b\0", 10); /* a personality that is cut off */
	broken_cie("\1zR\0\1\x78\x10\1\x1b\x41", 10); /* advances */
	broken_cie("\1zR\0\1\x78\x10\1\x1b\x0b", 10); /* restores what was not remembered */
	broken_cie("\1zR\0\1\x78\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\2", 17); /* LEB128 */
}

static void cie_without_a_cfa(void **)
{
	cfi_writer_fde(&w, cfi_writer_cie(&w, "zR", NO_CODE), CFI_TEXT, 16, NO_CODE);
	assert_string_equal(rule_at(0), "unsupported");
	assert_int_equal(index_unwind_figures(made)->unsupported, 1);
}

static void factors_that_overflow(void **)
{
	uint8_t bytes[40] = { 0, 0, 0, 0, 1, 'z', 'R', 0 };
	struct buffer cie;
	uint64_t at = w.bytes.size;

	buffer_init(&cie, sizeof(bytes) * 2);
	buffer_append(&cie, bytes, 8);
	put_uleb128(&cie, UINT64_MAX);
	put_sleb128(&cie, INT64_MIN);
	buffer_append(&cie, CFI(16, 1, 0x1b, DEF_CFA(7, 8), OFFSET(16, 1), OFFSET(6, 2)));
	cfi_writer_raw(&w, cie.bytes, cie.size);
	buffer_deinit(&cie);
	cfi_writer_fde(&w, at, CFI_TEXT, 16, CFI(ADVANCE(2)));
	cfi_writer_fde(&w, at, CFI_TEXT + 32, 16, CFI(0x13, 0x40));
	add_good();
	assert_string_equal(rule_at(0), "none");
	assert_string_equal(rule_at(32), "unsupported");
	assert_int_equal(broken(), 1);
	assert_good();
}

static void bytes_of_any_kind(void **)
{
	uint32_t state = 1;

	add_good();
	for (int i = 0; i < 4096; i++) {
		state = state * 1664525 + 1013904223;
		put_u8(&w.bytes, (uint8_t)(state >> 24));
	}
	assert_good();
	assert_true(broken() > 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_that_make_no_sense),
		cmocka_unit_test(cies_that_make_no_sense),
		CASE(code_that_is_cut_off),
		CASE(remembering_without_end),
		CASE(advancing_without_end),
		CASE(advancing_by_nothing),
		CASE(gigantic_ranges_end_with_the_code),
		CASE(empty_ranges_and_functions_outside_of_the_code),
		CASE(length_beyond_the_section),
		CASE(length_that_is_cut_off),
		CASE(wide_length_beyond_the_section),
		CASE(terminators_do_not_end_a_section),
		CASE(entries_too_short_for_an_id),
		CASE(fde_without_a_cie),
		CASE(fde_whose_cie_is_at_the_end_of_all_addresses),
		CASE(two_fdes_that_name_each_other),
		CASE(cie_without_a_cfa),
		CASE(factors_that_overflow),
		CASE(bytes_of_any_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
