/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed call frame information: instructions and entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/bytes.h"
#include "tests/unit/cfi_writer.h"

#define RULE(machine, ...) cfi_rule_of(machine, CFI(__VA_ARGS__))
#define X86(...) RULE(EM_X86_64, __VA_ARGS__)
#define ARM(...) RULE(EM_AARCH64, __VA_ARGS__)

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

static void pushes_move_the_cfa(void **)
{
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 64,
		CFI(ADVANCE(1), DEF_CFA_OFFSET(16), OFFSET(6, 2), ADVANCE(3), DEF_CFA_REGISTER(6),
			ADVANCE(20), DEF_CFA(7, 8), RESTORE(6)));
	assert_string_equal(rule_at(0), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(1), "sp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_string_equal(rule_at(3), "sp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_string_equal(rule_at(4), "fp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_string_equal(rule_at(23), "fp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_string_equal(rule_at(24), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(63), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(64), "none");
}

static void kept_register_is_told_where_it_is_followed(void **)
{
	w.kept = ABI_KEPT_R12 + 1;
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 64,
		CFI(ADVANCE(1), DEF_CFA_OFFSET(16), OFFSET(12, 2), OFFSET(3, 3), ADVANCE(1),
			DEF_CFA_REGISTER(6), ADVANCE(1), OFFSET(12, 31), ADVANCE(1), OFFSET(12, 32),
			ADVANCE(1), OFFSET(12, 1), ADVANCE(1), UNDEFINED(12), ADVANCE(1),
			RESTORE(12), ADVANCE(1), DEF_CFA(12, 8)));
	assert_string_equal(rule_at(0), "sp+8 fp=same ra=[cfa-8] r12=-1 words");
	assert_string_equal(rule_at(1), "sp+16 fp=same ra=[cfa-8] r12=-2 words");
	assert_string_equal(rule_at(2), "fp+16 fp=same ra=[cfa-8] r12=-2 words");
	assert_string_equal(rule_at(3), "fp+16 fp=same ra=[cfa-8] r12=-31 words");
	assert_string_equal(rule_at(4), "fp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(5), "fp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(6), "fp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(7), "fp+16 fp=same ra=[cfa-8] r12=-1 words");
	assert_string_equal(rule_at(8), "r12+8 fp=same ra=[cfa-8]");
}

static void rbx_is_followed_in_its_place(void **)
{
	w.kept = ABI_KEPT_RBX + 1;
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 64,
		CFI(ADVANCE(1), DEF_CFA_OFFSET(16), OFFSET(12, 2), OFFSET(3, 3)));
	assert_string_equal(rule_at(0), "sp+8 fp=same ra=[cfa-8] rbx=-1 words");
	assert_string_equal(rule_at(1), "sp+16 fp=same ra=[cfa-8] rbx=-3 words");
}

static void all_forms_of_advance(void **)
{
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 0x80000 - 1,
		CFI(ADVANCE(63), DEF_CFA_OFFSET(16), 0x02, 200, DEF_CFA_OFFSET(24), 0x03, 0, 2,
			DEF_CFA_OFFSET(32), ADVANCE4(0x20000), DEF_CFA_OFFSET(40), 0x1d, 1, 0, 0, 0,
			0, 0, 0, 0, DEF_CFA_OFFSET(48)));
	assert_string_equal(rule_at(62), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(63), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(263), "sp+24 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(263 + 512), "sp+32 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(263 + 512 + 0x20000), "sp+40 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(263 + 512 + 0x20001), "sp+48 fp=same ra=[cfa-8]");
}

static void set_loc_goes_to_an_address(void **)
{
	uint64_t cie = cfi_writer_usual_cie(&w);
	/* Length, id, low, range, length of the augmentation: 17 bytes; then the opcode. */
	uint64_t here = CFI_ADDRESS + w.bytes.size + 18;
	uint32_t delta = (uint32_t)(CFI_TEXT + 40 - here);

	cfi_writer_fde(&w, cie, CFI_TEXT, 64,
		CFI(0x01, delta & 0xff, delta >> 8 & 0xff, delta >> 16 & 0xff, delta >> 24,
			DEF_CFA_OFFSET(24)));
	assert_string_equal(rule_at(39), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(40), "sp+24 fp=same ra=[cfa-8]");
}

static void remembered_rows_nest(void **)
{
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 64,
		CFI(REMEMBER, DEF_CFA_OFFSET(16), OFFSET(6, 2), ADVANCE(4), REMEMBER,
			DEF_CFA_REGISTER(6), ADVANCE(4), RESTORE_STATE, ADVANCE(4), RESTORE_STATE));
	assert_string_equal(rule_at(0), "sp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_string_equal(rule_at(4), "fp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_string_equal(rule_at(8), "sp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_string_equal(rule_at(12), "sp+8 fp=same ra=[cfa-8]");
}

static void places_of_the_frame_pointer(void **)
{
	assert_string_equal(X86(0x05, 6, 3), "sp+8 fp=[cfa-24] ra=[cfa-8]");
	assert_string_equal(X86(0x11, 6, 3), "sp+8 fp=[cfa-24] ra=[cfa-8]");
	assert_string_equal(X86(0x11, 6, 0x7d), "sp+8 fp=[cfa+24] ra=[cfa-8]");
	assert_string_equal(X86(0x2f, 6, 3), "sp+8 fp=[cfa+24] ra=[cfa-8]");
	assert_string_equal(X86(UNDEFINED(6)), "sp+8 fp=undefined ra=[cfa-8]");
	assert_string_equal(X86(OFFSET(6, 2), 0x08, 6), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(X86(OFFSET(6, 2), 0x06, 6), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(X86(0x09, 6, 3), "sp+8 fp=unsupported ra=[cfa-8]");
	assert_string_equal(X86(0x14, 6, 3), "sp+8 fp=unsupported ra=[cfa-8]");
	assert_string_equal(X86(0x15, 6, 3), "sp+8 fp=unsupported ra=[cfa-8]");
	assert_string_equal(X86(0x16, 6, 1, 0x50), "sp+8 fp=unsupported ra=[cfa-8]");
	assert_string_equal(X86(0x10, 6, 2, 0x76, 0), "sp+8 fp=[fp+0] ra=[cfa-8]");
	assert_string_equal(X86(0x10, 6, 2, 0x76, 0x70), "sp+8 fp=[fp-16] ra=[cfa-8]");
	assert_string_equal(X86(0x10, 6, 2, 0x77, 0), "sp+8 fp=unsupported ra=[cfa-8]");
	assert_string_equal(X86(0x10, 6, 3, 0x76, 0, 0x06), "sp+8 fp=unsupported ra=[cfa-8]");
}

static void other_registers_and_sizes_of_arguments_do_not_matter(void **)
{
	assert_string_equal(X86(OFFSET(3, 2), RESTORE(3), 0x05, 12, 3, UNDEFINED(14), 0x2e, 16),
		"sp+8 fp=same ra=[cfa-8]");
}

static void forms_of_the_cfa(void **)
{
	assert_string_equal(X86(DEF_CFA(6, 16)), "fp+16 fp=same ra=[cfa-8]");
	assert_string_equal(X86(DEF_CFA(10, 0)), "r10+0 fp=same ra=[cfa-8]");
	assert_string_equal(X86(0x12, 7, 0x7e), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(X86(0x13, 0x7c), "sp+32 fp=same ra=[cfa-8]");
	/* 2^31 does not fit. */
	assert_string_equal(
		X86(0x0e, 0xff, 0xff, 0xff, 0xff, 0x07), "sp+2147483647 fp=same ra=[cfa-8]");
	assert_string_equal(X86(0x0e, 0x80, 0x80, 0x80, 0x80, 0x08), "unsupported");
}

static void expressions_that_are_understood(void **)
{
	assert_string_equal(X86(0x0f, 3, 0x76, 0x78, 0x06), "[fp-8]+0 fp=same ra=[cfa+0]");
	assert_string_equal(
		X86(0x0f, 5, 0x77, 0x20, 0x06, 0x23, 8), "[sp+32]+8 fp=same ra=[cfa+8]");
	assert_string_equal(
		X86(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22),
		"plt+11 fp=same ra=[cfa-8]");
	assert_string_equal(
		X86(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22),
		"plt+10 fp=same ra=[cfa-8]");
	/* OpenSSL's bn_mul_mont() */
	assert_string_equal(X86(0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8),
		"[sp+8*r9+8]+8 fp=same ra=[cfa+8]");
	/* SBCL's call_into_lisp(), with the rbp of Lisp's caller */
	assert_string_equal(X86(0x0f, 5, 0x76, 0, 0x06, 0x40, 0x22, OFFSET(6, 2)),
		"fp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_string_equal(
		X86(0x0f, 3, 0x76, 0x78, 0x06, DEF_CFA(7, 24)), "sp+24 fp=same ra=[cfa-8]");
}

static void expressions_that_are_not(void **)
{
	static const uint8_t plt[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };

	assert_string_equal(X86(0x0f, 3, 0x73, 0x78, 0x06), "unsupported"); /* rbx */
	assert_string_equal(X86(0x0f, 2, 0x76, 0x78), "unsupported"); /* no deref */
	assert_string_equal(X86(0x0f, 4, 0x76, 0x78, 0x06, 0x06), "unsupported"); /* twice */
	assert_string_equal(X86(0x0f, 4, 0x76, 0x78, 0x06, 0x23), "unsupported"); /* cut off */
	assert_string_equal(X86(0x0f, 7, 0x76, 0x78, 0x06, 0x23, 0x80, 0x80, 2), "unsupported");
	assert_string_equal(X86(0x0f, 0), "unsupported");
	/* An index of something else than sp, of other than words, and with an offset. */
	assert_string_equal(
		X86(0x0f, 10, 0x76, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8), "unsupported");
	assert_string_equal(
		X86(0x0f, 10, 0x77, 8, 0x79, 0, 0x34, 0x1e, 0x22, 0x06, 0x23, 8), "unsupported");
	assert_string_equal(
		X86(0x0f, 10, 0x77, 8, 0x79, 1, 0x38, 0x1e, 0x22, 0x06, 0x23, 8), "unsupported");
	for (size_t i = 0; i < sizeof(plt); i++) {
		uint8_t code[2 + sizeof(plt)] = { 0x0f, sizeof(plt) };

		memcpy(code + 2, plt, sizeof(plt));
		code[2 + i] ^= 0x40;
		assert_string_equal(cfi_rule_of(EM_X86_64, code, sizeof(code)), "unsupported");
	}
}

static void return_addresses(void **)
{
	assert_string_equal(X86(UNDEFINED(16)), "end");
	assert_string_equal(X86(0x09, 16, 5), "sp+8 fp=same ra=same"); /* in rdi: vfork */
	assert_string_equal(X86(0x09, 16, 5, 0x0d, 6), "unsupported");
	assert_string_equal(X86(0x09, 16, 2), "unsupported");
	assert_string_equal(X86(OFFSET(16, 2)), "unsupported");
	assert_string_equal(X86(UNDEFINED(16), RESTORE(16)), "sp+8 fp=same ra=[cfa-8]");
}

static void aarch64_saves_pairs(void **)
{
	assert_string_equal(ARM(0), "sp+0 fp=same ra=same");
	assert_string_equal(ARM(DEF_CFA_OFFSET(32), OFFSET(29, 4), OFFSET(30, 3)),
		"sp+32 fp=[cfa-32] ra=[cfa-24]");
	assert_string_equal(
		ARM(DEF_CFA(29, 16), OFFSET(29, 2), OFFSET(30, 1)), "fp+16 fp=[cfa-16] ra=[cfa-8]");
	assert_string_equal(ARM(UNDEFINED(30)), "end");
	assert_string_equal(ARM(0x09, 30, 15), "sp+0 fp=same ra=unsupported");
	assert_string_equal(ARM(0x0f, 3, 0x8d, 0, 0x06), "unsupported");
	assert_string_equal(ARM(0x05, 30, 0x80, 0x60), "sp+0 fp=same ra=unsupported"); /* 96 KiB */
}

static void aarch64_signs_return_addresses(void **)
{
	assert_string_equal(
		ARM(0x2d, DEF_CFA_OFFSET(16), OFFSET(30, 1)), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(ARM(0x2c, DEF_CFA_OFFSET(16)), "sp+16 fp=same ra=same");
	assert_string_equal(X86(0x2d), "none"); /* another machine's */
}

/* _dl_runtime_resolve of glibc: the stub's header has pushed two registers. */
static void aarch64_counts_from_above_what_a_stub_pushed(void **)
{
	cfi_writer_init(&w, EM_AARCH64);
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 64,
		CFI(ADVANCE(1), 0x11, 30, 0x7f, ADVANCE(1), DEF_CFA_OFFSET(48), OFFSET(29, 6),
			ADVANCE(8), RESTORE(29), DEF_CFA_OFFSET(0), ADVANCE(1), 0x13, 2));
	assert_string_equal(rule_at(0), "sp+16 fp=same ra=same");
	assert_string_equal(rule_at(4), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(8), "sp+64 fp=[cfa-64] ra=[cfa-8]");
	assert_string_equal(rule_at(40), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(44), "sp+0 fp=same ra=[cfa-8]");
}

static void aarch64_counts_instructions(void **)
{
	cfi_writer_init(&w, EM_AARCH64);
	cfi_writer_fde(
		&w, cfi_writer_usual_cie(&w), CFI_TEXT, 64, CFI(ADVANCE(3), DEF_CFA_OFFSET(48)));
	assert_string_equal(rule_at(11), "sp+0 fp=same ra=same");
	assert_string_equal(rule_at(12), "sp+48 fp=same ra=same");
}

static void return_address_in_another_register(void **)
{
	uint64_t cie;

	cfi_writer_init(&w, EM_AARCH64);
	w.ra = 15;
	cie = cfi_writer_usual_cie(&w);
	cfi_writer_fde(&w, cie, CFI_TEXT, 64, CFI(OFFSET(30, 1)));
	assert_string_equal(rule_at(0), "sp+0 fp=same ra=unsupported");
}

static void signal_frames(void **)
{
	uint64_t cie = cfi_writer_cie(&w, "zRS", CFI(DEF_CFA(7, 8), OFFSET(16, 1)));

	cfi_writer_fde(&w, cie, CFI_TEXT, 16, CFI(0x0f, 3, 0x77, 0x20, 0x06));
	cfi_writer_fde(&w, cie, CFI_TEXT + 16, 16, CFI(UNDEFINED(16)));
	assert_string_equal(rule_at(0), "signal");
	assert_string_equal(rule_at(16), "end");
}

static void augmentations(void **)
{
	static const char *const known[] = { "zRB", "zRG", "zRBG" };

	for (size_t i = 0; i < 3; i++) {
		uint64_t cie = cfi_writer_cie(&w, known[i], CFI(DEF_CFA(7, 8), OFFSET(16, 1)));

		cfi_writer_fde(&w, cie, CFI_TEXT + i * 16, 16, NO_CODE);
	}
	cfi_writer_fde(&w, cfi_writer_cie(&w, "zRx", CFI(DEF_CFA(7, 8), OFFSET(16, 1))),
		CFI_TEXT + 0x100, 16, NO_CODE);
	assert_string_equal(rule_at(0), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(47), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(0x100), "none");
	assert_int_equal(index_unwind_figures(made)->broken, 1);
}

static void check_formats_of_length(bool debug)
{
	w.debug = debug;
	w.wide = true;
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 16, NO_CODE);
	w.wide = false;
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT + 32, 16, NO_CODE);
	assert_string_equal(rule_at(0), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(32), "sp+8 fp=same ra=[cfa-8]");
	assert_int_equal(index_unwind_figures(made)->broken, 0);
}

static void both_formats_of_length_in_eh_frame(void **)
{
	check_formats_of_length(false);
}

static void both_formats_of_length_in_debug_frame(void **)
{
	check_formats_of_length(true);
}

static void one_section_fills_the_gaps_of_another(void **)
{
	struct cfi_writer debug;
	uint64_t cie;

	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 32, NO_CODE);
	cfi_writer_init(&debug, EM_X86_64);
	debug.debug = true;
	cie = cfi_writer_usual_cie(&debug);
	cfi_writer_fde(&debug, cie, CFI_TEXT, 32, CFI(DEF_CFA_OFFSET(32)));
	cfi_writer_fde(&debug, cie, CFI_TEXT + 64, 32, CFI(DEF_CFA_OFFSET(48)));
	made = cfi_writer_index(&w, &debug);
	assert_string_equal(rule_at(0), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(40), "none");
	assert_string_equal(rule_at(64), "sp+48 fp=same ra=[cfa-8]");
	cfi_writer_deinit(&debug);
}

static void padding_has_the_rule_of_what_follows(void **)
{
	uint64_t cie = cfi_writer_usual_cie(&w);

	cfi_writer_fde(&w, cie, CFI_TEXT, 17, CFI(DEF_CFA_OFFSET(32)));
	cfi_writer_fde(&w, cie, CFI_TEXT + 32, 16, NO_CODE); /* 15 bytes further */
	cfi_writer_fde(&w, cie, CFI_TEXT + 64, 8, NO_CODE); /* 16 */
	cfi_writer_fde(&w, cie, CFI_TEXT + 74, 6, NO_CODE); /* not aligned */
	cfi_writer_fde(&w, cie, CFI_TEXT + 88, 4, NO_CODE);
	cfi_writer_fde(&w, cie, CFI_TEXT + 96, 4, CFI(DEF_CFA_OFFSET(16))); /* no entry's rule */
	assert_string_equal(rule_at(16), "sp+32 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(17), "sp+8 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(48), "none");
	assert_string_equal(rule_at(72), "none");
	assert_string_equal(rule_at(92), "none");
}

static void entries_in_any_order(void **)
{
	uint64_t cie = cfi_writer_usual_cie(&w);

	cfi_writer_fde(&w, cie, CFI_TEXT + 96, 32, CFI(DEF_CFA_OFFSET(48)));
	cfi_writer_fde(&w, cie, CFI_TEXT, 32, CFI(DEF_CFA_OFFSET(16)));
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT + 48, 32, CFI(DEF_CFA_OFFSET(24)));
	assert_string_equal(rule_at(0), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(48), "sp+24 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(96), "sp+48 fp=same ra=[cfa-8]");
	assert_int_equal(index_unwind_figures(made)->functions, 3);
	assert_int_equal(index_unwind_figures(made)->broken, 0);
}

static void overlapping_entries_end_where_the_next_begins(void **)
{
	uint64_t cie = cfi_writer_usual_cie(&w);

	cfi_writer_fde(&w, cie, CFI_TEXT + 32, 16, CFI(DEF_CFA_OFFSET(24)));
	cfi_writer_fde(&w, cie, CFI_TEXT, 128, CFI(DEF_CFA_OFFSET(16)));
	cfi_writer_fde(
		&w, cie, CFI_TEXT, 64, CFI(DEF_CFA_OFFSET(32))); /* the second at its address */
	assert_string_equal(rule_at(0), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(31), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(32), "sp+24 fp=same ra=[cfa-8]");
	assert_string_equal(rule_at(48), "none");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(pushes_move_the_cfa),
		CASE(all_forms_of_advance),
		CASE(kept_register_is_told_where_it_is_followed),
		CASE(rbx_is_followed_in_its_place),
		CASE(set_loc_goes_to_an_address),
		CASE(remembered_rows_nest),
		CASE(places_of_the_frame_pointer),
		CASE(other_registers_and_sizes_of_arguments_do_not_matter),
		CASE(forms_of_the_cfa),
		CASE(expressions_that_are_understood),
		CASE(expressions_that_are_not),
		CASE(return_addresses),
		CASE(aarch64_saves_pairs),
		CASE(aarch64_signs_return_addresses),
		CASE(aarch64_counts_from_above_what_a_stub_pushed),
		CASE(aarch64_counts_instructions),
		CASE(return_address_in_another_register),
		CASE(signal_frames),
		CASE(augmentations),
		CASE(both_formats_of_length_in_eh_frame),
		CASE(both_formats_of_length_in_debug_frame),
		CASE(one_section_fills_the_gaps_of_another),
		CASE(padding_has_the_rule_of_what_follows),
		CASE(entries_in_any_order),
		CASE(overlapping_entries_end_where_the_next_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
