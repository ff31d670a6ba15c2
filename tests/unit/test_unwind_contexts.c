/* SPDX-License-Identifier: Apache-2.0 */
/* Unwinding where the stacks of contexts end that makecontext() made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbolizer/index/index.h"
#include "tests/unit/cfi_writer.h"

enum { CODE = CFI_TEXT, BYTES = 0x60 };

static const char entry[] = "sp+8 fp=same ra=[cfa-8]";
static const char framed[] = "sp+48 fp=same ra=[cfa-8]";

/* glibc's __start_context(): mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je; call; … */
#define START_CONTEXT                                                                             \
	0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff, 0x74, 0x08, 0xe8, 0, 0, 0, 0, \
		0x48, 0x89, 0xc7, 0xe8, 0, 0, 0, 0, 0xf4
#define LANDING 0xf3, 0x0f, 0x1e, 0xfa
enum { CONTEXT_BYTES = 26 };
#define NOPS_7 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90
#define RET 0xc3

/*
 * The index of a file with CODE: a function up to FIRST_END, one from LOW on (both are offsets) and
 * another behind that one. All have entries.
 */
static struct index *index_of(
	const uint8_t *code, size_t size, uint64_t first_end, uint64_t low, uint64_t bytes)
{
	struct elf_writer elf;
	struct cfi_writer cfi;
	uint8_t text[BYTES];
	uint64_t cie;

	memset(text, 0x90, sizeof(text));
	memcpy(text, code, size);
	elf_writer_init(&elf);
	elf_writer_section(&elf, &(struct elf_section_spec){ .name = ".text",
					 .flags = SHF_ALLOC | SHF_EXECINSTR,
					 .address = CODE,
					 .bytes = text,
					 .size = BYTES });
	cfi_writer_init(&cfi, EM_X86_64);
	cie = cfi_writer_usual_cie(&cfi);
	cfi_writer_fde(&cfi, cie, CODE, first_end, CFI(DEF_CFA_OFFSET(48)));
	cfi_writer_fde(&cfi, cie, CODE + low, bytes, NO_CODE);
	cfi_writer_fde(&cfi, cie, CODE + 0x40, 16, CFI(DEF_CFA_OFFSET(48)));
	return cfi_index_of(&elf, &cfi);
}

#define INDEX_OF(first_end, low, bytes, ...)                                                 \
	index_of((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), \
		first_end, low, bytes)

static void the_first_frame_has_no_caller(void **)
{
	struct index *index =
		INDEX_OF(9, 16, CONTEXT_BYTES, 0x90, NOPS_7, RET, NOPS_7, START_CONTEXT);

	assert_string_equal(cfi_rule_at(index, CODE + 8), framed);
	assert_string_equal(cfi_rule_at(index, CODE + 15), "end"); /* where it is looked up */
	assert_string_equal(cfi_rule_at(index, CODE + 16), "end");
	assert_string_equal(cfi_rule_at(index, CODE + 16 + CONTEXT_BYTES - 2), "end");
	assert_string_equal(cfi_rule_at(index, CODE + 0x40), framed);
	index_destroy(index);
}

static void nor_has_it_behind_a_landing(void **)
{
	struct index *index = INDEX_OF(
		9, 16, 4 + CONTEXT_BYTES, 0x90, NOPS_7, RET, NOPS_7, LANDING, START_CONTEXT);

	assert_string_equal(cfi_rule_at(index, CODE + 15), "end");
	assert_string_equal(cfi_rule_at(index, CODE + 16 + 4), "end");
	assert_string_equal(cfi_rule_at(index, CODE + 0x40), framed);
	index_destroy(index);
}

/* Without padding the byte before is another function's, which may run there. */
static void a_return_before_it_has_its_caller(void **)
{
	struct index *index =
		INDEX_OF(16, 16, CONTEXT_BYTES, 0x90, NOPS_7, NOPS_7, RET, START_CONTEXT);

	assert_string_equal(cfi_rule_at(index, CODE + 15), framed);
	assert_string_equal(cfi_rule_at(index, CODE + 16), entry);
	index_destroy(index);
}

static void other_code_has_its_entry(void **)
{
	struct index *index =
		INDEX_OF(9, 16, CONTEXT_BYTES, 0x90, NOPS_7, RET, NOPS_7, 0x48, 0x89, 0xdc);

	assert_string_equal(cfi_rule_at(index, CODE + 15), entry);
	assert_string_equal(cfi_rule_at(index, CODE + 16), entry);
	index_destroy(index);
	/* It is cut short by the end of the code. */
	index = INDEX_OF(9, 16, CONTEXT_BYTES, 0x90, NOPS_7, RET, NOPS_7);
	assert_string_equal(cfi_rule_at(index, CODE + 16), entry);
	index_destroy(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_frame_has_no_caller),
		cmocka_unit_test(nor_has_it_behind_a_landing),
		cmocka_unit_test(a_return_before_it_has_its_caller),
		cmocka_unit_test(other_code_has_its_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
