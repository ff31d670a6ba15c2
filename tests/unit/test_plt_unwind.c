/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinding from procedure linkage tables without call frame information. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/cfi_writer.h"

enum { PLT = CFI_TEXT + 0x400 };

static const char called[] = "sp+8 fp=same ra=[cfa-8]";
static const char pushed[] = "sp+16 fp=same ra=[cfa-8]";
static const char pushed_twice[] = "sp+24 fp=same ra=[cfa-8]";
static const char in_link_register[] = "sp+0 fp=same ra=same";

#define SLOT 0x10, 0x20, 0, 0
#define PUSH_SLOT 0xff, 0x35, SLOT
#define JUMP 0xff, 0x25, SLOT
#define PUSH_NUMBER 0x68, 1, 0, 0, 0
#define GO_TO_HEADER 0xe9, 0xd0, 0xff, 0xff, 0xff
#define LANDING 0xf3, 0x0f, 0x1e, 0xfa
#define ARM64(word) (word) & 0xff, (word) >> 8 & 0xff, (word) >> 16 & 0xff, (word) >> 24
#define ARM64_STUB ARM64(0x90000110U), ARM64(0xf9400211U), ARM64(0x91000210U), ARM64(0xd61f0220U)

struct plt {
	uint16_t machine;
	const char *name;
	uint64_t address;
	const uint8_t *code;
	size_t size;
	uint64_t described; /* how many bytes .eh_frame covers */
};

#define CODE(...) \
	.code = (const uint8_t[]){ __VA_ARGS__ }, .size = sizeof((const uint8_t[]){ __VA_ARGS__ })

/* The index of a file with a function at CFI_TEXT and this section. */
static struct index *index_of(const struct plt *plt)
{
	return cfi_index_beside(plt->machine,
		&(struct elf_section_spec){ .name = plt->name,
			.flags = SHF_ALLOC | SHF_EXECINSTR,
			.address = plt->address,
			.bytes = plt->code,
			.size = plt->size },
		plt->described, 0);
}

static void lazy_stubs_push_their_number(void **)
{
	struct index *index = index_of(&(struct plt){ EM_X86_64, ".plt", PLT,
		CODE(PUSH_SLOT, JUMP, 0x0f, 0x1f, 0x40, 0, JUMP, PUSH_NUMBER, GO_TO_HEADER, JUMP,
			PUSH_NUMBER, GO_TO_HEADER) });

	assert_string_equal(cfi_rule_at(index, PLT - 1), "none");
	assert_string_equal(cfi_rule_at(index, PLT), pushed);
	assert_string_equal(cfi_rule_at(index, PLT + 6), pushed_twice);
	assert_string_equal(cfi_rule_at(index, PLT + 16), "plt+11 fp=same ra=[cfa-8]");
	assert_string_equal(cfi_rule_at(index, PLT + 47), "plt+11 fp=same ra=[cfa-8]");
	assert_string_equal(cfi_rule_at(index, PLT + 48), "none");
	index_destroy(index);
}

static void with_branch_tracking_they_do_so_earlier(void **)
{
	struct index *index = index_of(&(struct plt){ EM_X86_64, ".plt", PLT,
		CODE(PUSH_SLOT, JUMP, 0x0f, 0x1f, 0x40, 0, LANDING, PUSH_NUMBER, GO_TO_HEADER, 0x66,
			0x90) });

	assert_string_equal(cfi_rule_at(index, PLT + 16), "plt+9 fp=same ra=[cfa-8]");
	index_destroy(index);
}

static void molds_stubs_push_nothing(void **)
{
	struct index *index = index_of(&(struct plt){ EM_X86_64, ".plt", PLT,
		CODE(LANDING, 0x41, 0x53, PUSH_SLOT, JUMP, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
			0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, LANDING, 0x41, 0xbb, 1, 0, 0, 0,
			JUMP) });

	assert_string_equal(cfi_rule_at(index, PLT + 5), called);
	assert_string_equal(cfi_rule_at(index, PLT + 6), pushed);
	assert_string_equal(cfi_rule_at(index, PLT + 12), pushed_twice);
	assert_string_equal(cfi_rule_at(index, PLT + 32), called);
	assert_string_equal(cfi_rule_at(index, PLT + 47), called);
	index_destroy(index);
}

/* GNU ld's stubs in static programs have 8 bytes, and need not start at a multiple of 16. */
static void short_stubs_are_anywhere(void **)
{
	struct index *index = index_of(&(struct plt){
		EM_X86_64, ".plt", PLT + 8, CODE(JUMP, 0x66, 0x90, JUMP, 0x66, 0x90) });

	assert_string_equal(cfi_rule_at(index, PLT + 7), "none");
	assert_string_equal(cfi_rule_at(index, PLT + 8), called);
	assert_string_equal(cfi_rule_at(index, PLT + 23), called);
	index_destroy(index);
}

static void stubs_are_in_several_sections(void **)
{
	static const char *const names[] = { ".plt", ".plt.got", ".plt.sec", ".iplt", ".text.plt" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct index *index = index_of(&(struct plt){ EM_X86_64, names[i], PLT,
			CODE(LANDING, 0xf2, JUMP, 0x0f, 0x1f, 0x44, 0, 0) });

		assert_string_equal(cfi_rule_at(index, PLT + 4), i < 4 ? called : "none");
		index_destroy(index);
	}
}

static void an_entry_counts_more(void **)
{
	struct index *index = index_of(&(struct plt){
		EM_X86_64, ".plt", PLT, CODE(JUMP, 0x66, 0x90, JUMP, 0x66, 0x90), .described = 8 });

	assert_string_equal(cfi_rule_at(index, PLT), "sp+48 fp=same ra=[cfa-8]");
	assert_string_equal(cfi_rule_at(index, PLT + 7), "sp+48 fp=same ra=[cfa-8]");
	assert_string_equal(cfi_rule_at(index, PLT + 8), called);
	index_destroy(index);
}

static void arm64_keeps_the_caller_in_the_link_register(void **)
{
	static const uint32_t header = 0xa9bf7bf0, landing = 0xd503245f, nop = 0xd503201f;
	struct index *index = index_of(&(struct plt){ EM_AARCH64, ".plt", PLT,
		CODE(ARM64(header), ARM64_STUB, ARM64(nop), ARM64(nop), ARM64(nop), ARM64_STUB) });

	assert_string_equal(cfi_rule_at(index, PLT), in_link_register);
	assert_string_equal(cfi_rule_at(index, PLT + 4), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(cfi_rule_at(index, PLT + 31), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(cfi_rule_at(index, PLT + 32), in_link_register);
	assert_string_equal(cfi_rule_at(index, PLT + 47), in_link_register);
	index_destroy(index);

	index = index_of(&(struct plt){ EM_AARCH64, ".plt", PLT,
		CODE(ARM64(landing), ARM64(header), ARM64_STUB, ARM64(nop), ARM64(nop),
			ARM64(landing), ARM64_STUB) });
	assert_string_equal(cfi_rule_at(index, PLT + 4), in_link_register);
	assert_string_equal(cfi_rule_at(index, PLT + 8), "sp+16 fp=same ra=[cfa-8]");
	assert_string_equal(cfi_rule_at(index, PLT + 32), in_link_register);
	index_destroy(index);

	index = index_of(&(struct plt){ EM_AARCH64, ".plt", PLT, CODE(ARM64_STUB) });
	assert_string_equal(cfi_rule_at(index, PLT), in_link_register);
	index_destroy(index);
}

static void code_that_is_no_stub_is_left_out(void **)
{
	const struct plt odd[] = {
		{ EM_X86_64, ".plt", PLT, CODE(0x90) },
		{ EM_X86_64, ".plt", PLT, CODE(0xff, 0x25, 1, 2, 3) }, /* truncated */
		{ EM_X86_64, ".plt", PLT, CODE(0xe8, SLOT, 0x90) },
		{ EM_X86_64, ".plt", PLT + 8, CODE(JUMP, PUSH_NUMBER, GO_TO_HEADER) },
		{ EM_X86_64, ".plt", PLT, CODE(LANDING) },
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct index *index = index_of(&odd[i]);

		assert_string_equal(cfi_rule_at(index, odd[i].address), "none");
		index_destroy(index);
	}
}

/* The header is truncated. */
static void headers_may_be_cut_short(void **)
{
	struct index *index =
		index_of(&(struct plt){ EM_X86_64, ".plt", PLT, CODE(PUSH_SLOT, 0x90) });

	assert_string_equal(cfi_rule_at(index, PLT), pushed);
	assert_string_equal(cfi_rule_at(index, PLT + 7), "none");
	index_destroy(index);
	index = index_of(&(struct plt){ EM_AARCH64, ".plt", PLT, CODE(ARM64(0xa9bf7bf0U), 0) });
	assert_string_equal(cfi_rule_at(index, PLT + 4), "sp+16 fp=same ra=[cfa-8]");
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lazy_stubs_push_their_number),
		cmocka_unit_test(with_branch_tracking_they_do_so_earlier),
		cmocka_unit_test(molds_stubs_push_nothing),
		cmocka_unit_test(short_stubs_are_anywhere),
		cmocka_unit_test(stubs_are_in_several_sections),
		cmocka_unit_test(an_entry_counts_more),
		cmocka_unit_test(arm64_keeps_the_caller_in_the_link_register),
		cmocka_unit_test(code_that_is_no_stub_is_left_out),
		cmocka_unit_test(headers_may_be_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
