/* SPDX-License-Identifier: Apache-2.0 */
/* Functions found in machine code of x86_64: their returns, and when they cannot be trusted. */
#include "symbolizer/indexer/code/body.h"
#include "tests/unit/code_fixture.h"

/* ---- what returns --------------------------------------------------------------------------- */

static void test_each_kind_of_return(void **)
{
	/* ret; repz ret; bnd ret; ret $8 */
	assert_functions(
		&(struct code_program){ CODE(0x90, 0xc3, 0xf3, 0xc3, 0xf2, 0xc3, 0xc2, 8, 0),
			.symbols = { { "f", 0, 9 } } },
		"f@0:1,2,4,6");
	/* lret, iretq: never made by a compiler */
	assert_functions(&(struct code_program){ CODE(0x90, 0xcb, 0x48, 0xcf),
				 .symbols = { { "f", 0, 4 } } },
		"f@0/N/I");
}

static void test_an_entry_that_is_a_return(void **)
{
	assert_functions(
		&(struct code_program){ CODE(0xc3, 0xf3, 0x0f, 0x1e, 0xfa, 0xc3), /* endbr64 */
			.symbols = { { "f", 0, 1 }, { "g", 1, 5 } } },
		"f@0:0/E g@1:5");
}

/* c3 is also the second byte of an immediate or a displacement. */
static void test_bytes_inside_of_instructions_are_no_returns(void **)
{
	/* mov $0xc3c3c3c3,%eax; mov 0x44c3(%rip),%eax; ret */
	assert_functions(&(struct code_program){ CODE(0xb8, 0xc3, 0xc3, 0xc3, 0xc3, 0x8b, 0x05,
							 0xc3, 0x44, 0, 0, 0xc3),
				 .symbols = { { "f", 0, 12 } } },
		"f@0:b");
}

static void test_functions_that_do_not_return(void **)
{
	/* ud2; jmp to itself; hlt; call with nothing behind */
	assert_functions(
		&(struct code_program){ CODE(0x0f, 0x0b, 0xeb, 0xfe, 0xf4, 0xe8, 0, 0, 0, 0),
			.symbols = { { "a", 0, 2 }, { "b", 2, 2 }, { "c", 4, 1 }, { "d", 5, 5 } } },
		"a@0/N b@2/N c@4/N d@5/N");
}

/* ---- where control goes --------------------------------------------------------------------- */

static void test_jumps_to_other_functions(void **)
{
	/* a: je b; ret   b: jmp a   c: jmp *slot(%rip)   d: jmp c, 4 bytes of distance */
	assert_functions(&(struct code_program){ CODE(0x74, 1, 0xc3, 0xeb, 0xfb, 0xff, 0x25, 0, 1,
							 0, 0, 0xe9, 0xf5, 0xff, 0xff, 0xff),
				 .symbols = { { "a", 0, 3 }, { "b", 3, 2 }, { "c", 5, 6 },
					 { "d", 11, 5 } } },
		"a@0:2/T b@3/N/T c@5/N/T d@b/N/T");
}

static void test_jumps_inside_are_no_tail_jumps(void **)
{
	/* recursion as a loop: test; je +2; jmp entry; ret */
	assert_functions(&(struct code_program){ CODE(0x85, 0xc0, 0x74, 2, 0xeb, 0xfa, 0xc3),
				 .symbols = { { "f", 0, 7 } } },
		"f@0:6");
}

static void test_indirect_jumps(void **)
{
	/* jmp *%rax; jmp *0x10(,%rax,8); ret */
	assert_functions(
		&(struct code_program){ CODE(0xff, 0xe0, 0xff, 0x24, 0xc5, 0x10, 0, 0, 0, 0xc3),
			.symbols = { { "f", 0, 10 } } },
		"f@0:9/I");
}

static void test_code_that_runs_on_into_another_function(void **)
{
	assert_functions(
		&(struct code_program){ CODE(0x89, 0xc0, 0x89, 0xc0, 0xc3), /* mov %eax,%eax */
			.symbols = { { "checked", 0, 2 }, { "f", 2, 3 } } },
		"checked@0/N/T f@2:4");
	/* Not if it is only padding, or nothing leads there. */
	assert_functions(&(struct code_program){ CODE(0xc3, 0x90, 0x90, 0xc3, 0x89, 0xc0),
				 .symbols = { { "padded", 0, 3 }, { "dead", 3, 3 } } },
		"padded@0:0/E dead@3:3/E");
	/* A jump leads there: je +1; ret; mov %eax,%eax */
	assert_functions(&(struct code_program){ CODE(0x74, 1, 0xc3, 0x89, 0xc0, 0xc3),
				 .symbols = { { "f", 0, 5 } } },
		"f@0:2/T");
}

/* ---- what cannot be trusted ----------------------------------------------------------------- */

static void test_a_jump_into_an_instruction(void **)
{
	/* jmp +1; mov $0x909090c3,%eax; ret: the jump leads to the immediate's c3 */
	assert_functions(&(struct code_program){ CODE(0xeb, 1, 0xb8, 0xc3, 0x90, 0x90, 0x90, 0xc3),
				 .symbols = { { "f", 0, 8 } } },
		"f@0/U");
}

static void test_a_jump_over_a_lock_prefix(void **)
{
	/* je +1; lock cmpxchg %ecx,(%rdi); ret, as in the C library's memory allocator */
	assert_functions(&(struct code_program){ CODE(0x74, 1, 0xf0, 0x0f, 0xb1, 0x0f, 0xc3),
				 .symbols = { { "f", 0, 7 } } },
		"f@0:6");
	/* Into the middle of it, or over another prefix, is something else. */
	assert_functions(&(struct code_program){ CODE(0x74, 2, 0xf0, 0x0f, 0xb1, 0x0f, 0xc3),
				 .symbols = { { "f", 0, 7 } } },
		"f@0/U");
	assert_functions(&(struct code_program){ CODE(0x74, 1, 0x66, 0xb8, 0xc3, 0xc3, 0xc3),
				 .symbols = { { "f", 0, 7 } } },
		"f@0/U");
}

static void test_code_that_is_data(void **)
{
	/* 06 is no instruction in 64-bit mode. */
	assert_functions(&(struct code_program){ CODE(0xc3, 0x06, 0xc3, 0xc3),
				 .symbols = { { "f", 0, 3 }, { "g", 3, 1 } } },
		"f@0/U g@3:3/E");
}

static void test_functions_that_are_cut_off(void **)
{
	/* The last instruction exceeds the symbol; the symbol exceeds the section, which cuts it.
	 */
	assert_functions(&(struct code_program){ CODE(0xc3, 0xb8, 0, 0, 0, 0, 0x90, 0xc3),
				 .symbols = { { "f", 0, 4 }, { "g", 6, 0x10000 } } },
		"f@0/U g@6:7");
}

/* The file ends before the segment does. */
static void test_a_truncated_file(void **)
{
	struct elf_writer elf;
	struct index *index;
	autoclose int fd = -1;

	elf_writer_init(&elf);
	elf.no_segments = true;
	elf_writer_segment(&elf, &(Elf64_Phdr){ .p_type = PT_LOAD,
					 .p_flags = PF_R | PF_X,
					 .p_vaddr = TEXT,
					 .p_memsz = 0x4000,
					 .p_filesz = 0x4000 });
	elf_writer_section(&elf, &(struct elf_section_spec){ .name = ".text",
					 .type = SHT_NOBITS,
					 .flags = SHF_ALLOC | SHF_EXECINSTR,
					 .address = TEXT,
					 .size = 0x4000 });
	add_code_symbol(&elf, &(struct code_symbol){ "f", 0x3000, 0x1000 });
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	index = index_of_file(fd);
	assert_string_equal(described(index), "f@3000/U");
	index_destroy(index);
}

/* ---- which code is whose -------------------------------------------------------------------- */

static void test_moved_parts_belong_to_their_function(void **)
{
	/* f: je f.cold; ret   g: ret   f.cold: call; jmp f+2, or ret */
	assert_functions(&(struct code_program){ CODE(0x74, 2, 0xc3, 0xc3, 0xe8, 0, 0, 0, 0, 0x75,
							 0xf7, 0xc3),
				 .symbols = { { "f", 0, 3 }, { "g", 3, 1 }, { "f.cold", 4, 8 } } },
		"f@0:2,b g@3:3/E");
	/* With a number, too; and what only looks alike is a function. */
	assert_functions(&(struct code_program){ CODE(0x90, 0xc3, 0x90, 0xc3),
				 .symbols = { { "f.cold.12", 0, 2 }, { "very.cold.day", 2, 2 } } },
		"very.cold.day@2:3");
}

static void test_a_jump_into_the_middle_of_a_moved_part(void **)
{
	/* f: je f.cold + 1; ret   f.cold: mov $imm,%eax; ret */
	assert_functions(&(struct code_program){ CODE(0x74, 2, 0xc3, 0xb8, 0xc3, 0, 0, 0, 0xc3),
				 .symbols = { { "f", 0, 3 }, { "f.cold", 3, 6 } } },
		"f@0/U");
}

static void test_names_of_one_address_share_the_returns(void **)
{
	/* The largest one has the code. A label without a type is a name, but no function. */
	assert_functions(
		&(struct code_program){ CODE(0x90, 0xc3, 0x90, 0xc3),
			.symbols = { { "malloc", 0, 4 }, { "__libc_malloc", 0, 2 },
				{ "label", 0, 0, CODE_LABEL }, { "inside", 2, 0, CODE_LABEL } } },
		"malloc@0:1,3 __libc_malloc@0:1,3 label@0:1,3");
}

static void test_functions_may_overlap(void **)
{
	assert_functions(&(struct code_program){ CODE(0x90, 0x90, 0x90, 0xc3),
				 .symbols = { { "outer", 0, 4 }, { "inner", 2, 2 } } },
		"outer@0:3 inner@2:3");
}

static void decode(uint16_t machine, const void *code, size_t size,
	const struct writer_body *function, struct code_body *ret_body)
{
	struct code_decoder *decoder;
	struct elf_image *image;
	struct elf_writer elf;
	autoclose int fd = -1;

	elf_writer_init(&elf);
	elf.machine = machine;
	elf_writer_section(&elf, &(struct elf_section_spec){ .name = ".text",
					 .flags = SHF_ALLOC | SHF_EXECINSTR,
					 .address = TEXT,
					 .bytes = code,
					 .size = size });
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(code_decoder_create(machine, &decoder), 0);
	ret_body->image = image;
	ret_body->decoder = decoder;
	assert_int_equal(code_body_decode(ret_body, function), 0);
	code_decoder_destroy(decoder);
	elf_image_destroy(image);
}

/* How far behind the entry CODE begins again; 0 = it does not. */
static uint64_t restart_of(uint16_t machine, const void *code, size_t size)
{
	const struct writer_part whole = { TEXT, TEXT + size };
	const struct writer_body function = {
		.entry = TEXT, .parts = &whole, .part_count = 1, .has_end = true
	};
	struct code_body body = { 0 };

	decode(machine, code, size, &function, &body);
	code_body_deinit(&body);
	return body.restart ? body.restart - TEXT : 0;
}

/* As debug information may say: parts in any order, that overlap. */
static void test_returns_are_in_order_and_each_is_there_once(void **)
{
	static const uint8_t code[] = { 0x90, 0xc3, 0x90, 0xc3, 0x90, 0xc3 };
	const struct writer_part parts[] = { { TEXT + 4, TEXT + 6 }, { TEXT, TEXT + 4 },
		{ TEXT + 2, TEXT + 6 } };
	const struct writer_body function = {
		.entry = TEXT + 4,
		.parts = parts,
		.part_count = ARRAY_SIZE(parts),
		.has_end = true,
	};
	struct code_body body = { 0 };

	decode(EM_X86_64, code, sizeof(code), &function, &body);
	assert_int_equal(body.flags, 0);
	assert_int_equal(body.return_count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(body.returns[i], TEXT + 1 + 2 * i);
	code_body_deinit(&body);
}

/* ---- where a function begins again ---------------------------------------------------------- */

#define RESTART_OF(...)                                         \
	restart_of(EM_X86_64, (const uint8_t[]){ __VA_ARGS__ }, \
		sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void test_a_call_and_a_jump_to_the_entry(void **)
{
	/* nop; ret; call; jmp */
	assert_int_equal(RESTART_OF(0x90, 0xc3, 0xe8, 0, 0, 0, 0, 0xeb, 0xf7), 7);
	/* nop; ret; push; call; pop; jmp with four bytes */
	assert_int_equal(
		RESTART_OF(0x90, 0xc3, 0x50, 0xe8, 0, 0, 0, 0, 0x58, 0xe9, 0xf2, 0xff, 0xff, 0xff),
		8);
}

static void test_what_is_no_restart(void **)
{
	/* nop; ret; call; jmp behind the entry */
	assert_int_equal(RESTART_OF(0x90, 0xc3, 0xe8, 0, 0, 0, 0, 0xeb, 0xf8), 0);
	/* nop; ret; nop; jmp: no call */
	assert_int_equal(RESTART_OF(0x90, 0xc3, 0x90, 0xeb, 0xfb), 0);
	/* nop; call; ret; jmp: the call does not lead there */
	assert_int_equal(RESTART_OF(0x90, 0xe8, 0, 0, 0, 0, 0xc3, 0xeb, 0xf7), 0);
	/* nop; call; je over the jump; jmp; ret */
	assert_int_equal(RESTART_OF(0x90, 0xe8, 0, 0, 0, 0, 0x74, 2, 0xeb, 0xf6, 0xc3), 0);
	/* a branch to the entry: call; je */
	assert_int_equal(RESTART_OF(0x90, 0xe8, 0, 0, 0, 0, 0x74, 0xf8, 0xc3), 0);
	/* two of them */
	assert_int_equal(
		RESTART_OF(0x90, 0xe8, 0, 0, 0, 0, 0xeb, 0xf8, 0xe8, 0, 0, 0, 0, 0xeb, 0xf1, 0xc3),
		0);
}

static void test_functions_without_a_size_end_where_control_leaves(void **)
{
	/* je +1; ret; ret; data */
	assert_functions(&(struct code_program){ CODE(0x74, 1, 0xc3, 0xc3, 0x06, 0xc3),
				 .symbols = { { "f", 0, 0 } } },
		"f@0:2,3");
	/* A label inside does not end it, the next function does. */
	assert_functions(&(struct code_program){ CODE(0x74, 1, 0xc3, 0xc3, 0xc3),
				 .symbols = { { "f", 0, 0 }, { "label", 3, 0, CODE_LABEL },
					 { "g", 4, 1 } } },
		"f@0:2,3 g@4:4/E");
	assert_functions(&(struct code_program){ CODE(0x89, 0xc0, 0xc3),
				 .symbols = { { "f", 0, 0 }, { "g", 2, 1 } } },
		"f@0/N/T g@2:2/E");
	/* Behind an indirect jump there may be the cases of a switch. */
	assert_functions(&(struct code_program){ CODE(0x74, 2, 0xff, 0xe0, 0xff, 0xe0, 0xc3),
				 .symbols = { { "f", 0, 0 } } },
		"f@0/I/U");
}

static void test_entries_that_the_kernel_misreads(void **)
{
	/* vpor %xmm0,%xmm1,%xmm0 (0xeb is jmp); vmulsd %xmm1,%xmm0,%xmm0; each with ret */
	assert_functions(&(struct code_program){ CODE(0xc5, 0xf1, 0xeb, 0xc0, 0xc3, 0xc5, 0xfb,
							 0x59, 0xc1, 0xc3),
				 .symbols = { { "or", 0, 5 }, { "multiply", 5, 5 } } },
		"or@0:4/M multiply@5:9");
	/* vcmpltsd %xmm1,%xmm0,%xmm0 (0xc2 is ret); vpbroadcastb %esi,%ymm16, EVEX (0x7a is jp) */
	assert_functions(&(struct code_program){ CODE(0xc5, 0xfb, 0xc2, 0xc1, 1, 0xc3, 0x62, 0xe2,
							 0x7d, 0x28, 0x7a, 0xc6, 0xc3),
				 .symbols = { { "compare", 0, 6 }, { "spread", 6, 7 } } },
		"compare@0:5/M spread@6:c/M");
	/* Not at the entry: xor %eax,%eax; vpor; ret. Nor is pshufd (66 0f 70) misread. */
	assert_functions(&(struct code_program){ CODE(0x31, 0xc0, 0xc5, 0xf1, 0xeb, 0xc0, 0xc3,
							 0x66, 0x0f, 0x70, 0xc0, 0x1b, 0xc3),
				 .symbols = { { "later", 0, 7 }, { "shuffle", 7, 6 } } },
		"later@0:6 shuffle@7:c");
}

static void test_resolvers_are_no_functions_to_be_measured(void **)
{
	assert_functions(&(struct code_program){ CODE(0x90, 0xc3),
				 .symbols = { { "memcpy", 0, 2, STT_GNU_IFUNC },
					 { "choose_memcpy", 0, 2 } } },
		"memcpy@0:1/R choose_memcpy@0:1/R");
}

/* ---- bounds --------------------------------------------------------------------------------- */

/* Three thousand functions that each have a megabyte: decoding all would take a minute. */
static void test_overlapping_functions_cost_no_more_than_the_allowance(void **)
{
	static const uint8_t nop[] = { 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0 };
	enum { FUNCTIONS = 3000, SIZE = 116508 * sizeof(nop) };
	uint8_t *code = malloc(SIZE);
	size_t decoded = 0, refused = 0;
	struct index_function f;
	struct elf_writer elf;
	struct index *index;
	autoclose int fd = -1;
	char name[16];

	for (size_t i = 0; i < SIZE; i++)
		code[i] = nop[i % sizeof(nop)];
	code[SIZE - 1] = 0xc3; /* cuts the last nop */
	elf_writer_init(&elf);
	elf_writer_section(&elf, &(struct elf_section_spec){ .name = ".text",
					 .flags = SHF_ALLOC | SHF_EXECINSTR,
					 .address = TEXT,
					 .bytes = code,
					 .size = SIZE });
	for (size_t i = 0; i < FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "f%zu", i);
		add_code_symbol(&elf, &(struct code_symbol){ name, i * sizeof(nop),
					      SIZE - (i + 1) * sizeof(nop) });
	}
	fd = elf_writer_file(&elf);
	elf_writer_deinit(&elf);
	index = index_of_file(fd);
	for (size_t i = 0; i < index_function_count(index); i++) {
		assert_true(index_function(index, i, &f));
		refused += f.flags == INDEX_FUNCTION_UNDECODED;
		decoded += f.flags == INDEX_FUNCTION_NO_RETURN;
	}
	assert_int_equal(decoded + refused, FUNCTIONS);
	assert_in_range(decoded, 8, 100);
	index_destroy(index);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind_of_return),
		cmocka_unit_test(test_an_entry_that_is_a_return),
		cmocka_unit_test(test_bytes_inside_of_instructions_are_no_returns),
		cmocka_unit_test(test_functions_that_do_not_return),
		cmocka_unit_test(test_jumps_to_other_functions),
		cmocka_unit_test(test_jumps_inside_are_no_tail_jumps),
		cmocka_unit_test(test_indirect_jumps),
		cmocka_unit_test(test_code_that_runs_on_into_another_function),
		cmocka_unit_test(test_a_jump_into_an_instruction),
		cmocka_unit_test(test_a_jump_over_a_lock_prefix),
		cmocka_unit_test(test_code_that_is_data),
		cmocka_unit_test(test_functions_that_are_cut_off),
		cmocka_unit_test(test_a_truncated_file),
		cmocka_unit_test(test_moved_parts_belong_to_their_function),
		cmocka_unit_test(test_a_jump_into_the_middle_of_a_moved_part),
		cmocka_unit_test(test_names_of_one_address_share_the_returns),
		cmocka_unit_test(test_functions_may_overlap),
		cmocka_unit_test(test_returns_are_in_order_and_each_is_there_once),
		cmocka_unit_test(test_a_call_and_a_jump_to_the_entry),
		cmocka_unit_test(test_what_is_no_restart),
		cmocka_unit_test(test_functions_without_a_size_end_where_control_leaves),
		cmocka_unit_test(test_entries_that_the_kernel_misreads),
		cmocka_unit_test(test_resolvers_are_no_functions_to_be_measured),
		cmocka_unit_test(test_overlapping_functions_cost_no_more_than_the_allowance),
	};

	code_libraries_load(true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
