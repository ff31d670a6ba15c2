/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a runtime, from the words that BPF records through the stack table into a report. The
 * runtime is fake: its frames are named by what the test stores for a process.
 */
#include <libdeflate.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "bpf/hash.bpf.h"
#include "proto/profile.pb-c.h"
#include "tests/unit/report_fixture.h"

#define autobuffer autocall(buffer_deinit) struct buffer

enum { KIND = 42, OTHER_KIND = 126, WORDS = 8 };

static const uint64_t code = UINT64_C(0x00fedcba98765432); /* all of its 56 bits count */
static const struct abi_frame sampled = { .address = UINT64_C(0x00fedcba98765432),
	.kind = KIND,
	.position = 0x89abcdef,
	.cookie = 0x12345678 };

/* ---- words ---------------------------------------------------------------------------------- */

static void assert_frame(const struct abi_frame *frame, const struct abi_frame *expected)
{
	assert_int_equal(frame->address, expected->address);
	assert_int_equal(frame->kind, expected->kind);
	assert_int_equal(frame->position, expected->position);
	assert_int_equal(frame->cookie, expected->cookie);
}

static void frames_of_one_and_of_two_words_mix(void **state)
{
	const struct abi_frame pc = { .address = 0x401000 }, outer = { .address = 0x402000 };
	uint64_t words[WORDS] = { pc.address, 0, 0, outer.address };
	struct abi_frame frame = { 0 };
	uint32_t at = 0;

	(void)state;
	abi_frame_write(&sampled, &words[1]);
	assert_true(abi_frame_read(words, 4, ABI_STACK_RUNTIME_FRAMES, &at, &frame));
	assert_frame(&frame, &pc);
	assert_true(abi_frame_read(words, 4, ABI_STACK_RUNTIME_FRAMES, &at, &frame));
	assert_frame(&frame, &sampled);
	assert_true(abi_frame_read(words, 4, ABI_STACK_RUNTIME_FRAMES, &at, &frame));
	assert_frame(&frame, &outer);
	assert_false(abi_frame_read(words, 4, ABI_STACK_RUNTIME_FRAMES, &at, &frame));
	assert_int_equal(at, 4);
}

/* A walk by frame pointer may record any word. */
static void without_the_flag_every_word_is_a_pc(void **state)
{
	uint64_t words[ABI_FRAME_RUNTIME_WORDS];
	struct abi_frame frame = { 0 };
	uint32_t at = 0;

	(void)state;
	abi_frame_write(&sampled, words);
	assert_true(abi_frame_read(words, 2, 0, &at, &frame));
	assert_frame(&frame, &(struct abi_frame){ .address = words[0] });
	assert_int_equal(at, 1);
}

static void addresses_of_the_kernels_half_are_pcs(void **state)
{
	const uint64_t vsyscall = UINT64_C(0xffffffffff600400);
	struct abi_frame frame = { 0 };
	uint32_t at = 0;

	(void)state;
	assert_true(abi_frame_read(&vsyscall, 1, ABI_STACK_RUNTIME_FRAMES, &at, &frame));
	assert_frame(&frame, &(struct abi_frame){ .address = vsyscall });
}

static void a_frame_that_the_depth_limit_cut_is_left_out(void **state)
{
	uint64_t words[1 + ABI_FRAME_RUNTIME_WORDS] = { 0x401000 };
	struct abi_frame frame = { 0 };
	uint32_t at = 1;

	(void)state;
	abi_frame_write(&sampled, &words[1]);
	assert_false(abi_frame_read(words, 2, ABI_STACK_RUNTIME_FRAMES, &at, &frame));
}

static uint64_t hash_of(const struct abi_frame *frame)
{
	uint64_t words[ABI_FRAME_RUNTIME_WORDS];

	abi_frame_write(frame, words);
	return stack_hash_end(
		stack_hash_frame(stack_hash_frame(STACK_HASH_MUL_3, words[0]), words[1]), 2,
		ABI_STACK_RUNTIME_FRAMES);
}

/* ---- the stack table ------------------------------------------------------------------------ */

/* Each differs from `sampled` in one field. */
static const struct abi_frame others[] = {
	{ 0x00fedcba98765433, KIND, 0x89abcdef, 0x12345678 },
	{ 0x007edcba98765432, KIND, 0x89abcdef, 0x12345678 },
	{ 0x00fedcba98765432, OTHER_KIND, 0x89abcdef, 0x12345678 },
	{ 0x00fedcba98765432, PROFILE_KIND_RUNTIME, 0x89abcdef, 0x12345678 },
	{ 0x00fedcba98765432, KIND, 0x89abcdee, 0x12345678 },
	{ 0x00fedcba98765432, KIND, 0x09abcdef, 0x12345678 },
	{ 0x00fedcba98765432, KIND, 0x89abcdef, 0x12345679 },
	{ 0x00fedcba98765432, KIND, 0x89abcdef, 0x92345678 },
};

static uint32_t number_of(struct fixture *f, const struct profile_frame *frame)
{
	uint32_t number = UINT32_MAX;

	assert_int_equal(
		profile_stack(f->profile, &(struct profile_stack){ frame, 1, 0, 0 }, &number), 0);
	return number;
}

static void every_word_of_a_runtimes_frame_is_compared(void **state)
{
	struct fixture *f = *state;
	const struct profile_frame frame = profile_runtime_frame(&sampled);
	uint32_t number = number_of(f, &frame);

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		const struct profile_frame other = profile_runtime_frame(&others[i]);

		assert_int_not_equal(hash_of(&others[i]), hash_of(&sampled));
		assert_int_equal(number_of(f, &other), i + 1);
		assert_int_equal(number_of(f, &frame), number);
	}
}

static void a_runtimes_frame_comes_back_whole(void **state)
{
	struct fixture *f = *state;
	const struct profile_frame frame = profile_runtime_frame(&sampled);
	struct profile_stack stack = profile_stack_at(f->profile, number_of(f, &frame));
	struct abi_frame back = profile_frame_of_runtime(&stack.frames[0]);

	assert_frame(&back, &sampled);
	assert_true(profile_frame_is_runtime(&stack.frames[0]));
}

static void native_and_kernel_frames_belong_to_no_runtime(void **state)
{
	struct fixture *f = *state;
	const struct profile_frame frames[] = { in_program(MAIN, 0, f), in_kernel(1, 0),
		{ 0x1234, PROFILE_MODULE_NONE, 0 }, { 0x1234, MODULE_NUMBER_MAX, 0 } };

	assert_false(profile_frame_is_runtime(&frames[0]));
	assert_false(profile_frame_is_runtime(&frames[1]));
	assert_false(profile_frame_is_runtime(&frames[2]));
	assert_false(profile_frame_is_runtime(&frames[3]));
	assert_int_equal(profile_frame_kind(&frames[0]), PROFILE_KIND_NATIVE);
	assert_int_equal(profile_frame_kind(&frames[1]), PROFILE_KIND_KERNEL);
}

/* ---- the report ----------------------------------------------------------------------------- */

/* Process `one` has an inlined call at the sampled position, process `two` another function. */
static void test_runtime_names(
	void *context, uint32_t process, const struct abi_frame *frame, struct runtime_names *names)
{
	const struct fixture *f = context;

	names->mapping = "[testvm]";
	if (frame->kind != KIND || frame->address != code || frame->cookie != sampled.cookie)
		return;
	names->line_count = process == f->one->number ? 2 : 1;
	names->lines[0] =
		(struct index_frame){ .name = process == f->one->number ? "inner" : "Other.run",
			.linkage = "linkage",
			.file = "app.vm",
			.line = frame->position & 0xff,
			.start_line = 3 };
	names->lines[1] = (struct index_frame){
		.name = "Outer.run", .linkage = "Outer.run", .file = "app.vm", .line = 17
	};
}

static void add_runtime_stack(
	struct fixture *f, const struct process *p, const struct abi_frame *leaf)
{
	const struct profile_frame frames[] = { in_kernel(1, 0), profile_runtime_frame(leaf),
		in_program(START + 5, PROFILE_FRAME_RETURN, f) };

	add_stack(f, p, &(struct profile_stack){ frames, 3, 1, 0 }, 1);
}

static char *folded_of(struct fixture *f)
{
	struct report_summary summary;
	autobuffer out;

	buffer_init(&out, SIZE_MAX);
	assert_int_equal(
		report_folded(sealed_sources(f), &f->options, SAMPLE_TYPE_TICKS, &out, &summary),
		0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	return (char *)take(out.bytes);
}

static void the_same_frame_has_the_names_of_its_process(void **state)
{
	struct fixture *f = *state;
	struct abi_frame unknown = sampled;
	autofree char *text = NULL;

	f->runtime_names = test_runtime_names;
	unknown.cookie++;
	add_runtime_stack(f, f->one, &sampled);
	add_runtime_stack(f, f->two, &sampled);
	add_runtime_stack(f, f->two, &unknown);
	text = folded_of(f);
	assert_string_equal(text, "one;_start;Outer.run;inner;do_syscall_64_[k] 1\n"
				  "two;_start;Other.run;do_syscall_64_[k] 1\n"
				  "two;_start;[testvm];do_syscall_64_[k] 1\n");
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NO_SYMBOL), 1);
}

static void without_a_runtime_that_names_them_frames_stay(void **state)
{
	struct fixture *f = *state;
	autofree char *text = NULL;

	add_runtime_stack(f, f->one, &sampled);
	text = folded_of(f);
	assert_string_equal(text, "one;_start;[runtime];do_syscall_64_[k] 1\n");
}

static Perftools__Profiles__Profile *pprof_of(struct fixture *f)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	autofree uint8_t *plain = malloc(1 << 20);
	Perftools__Profiles__Profile *message;
	struct report_summary summary;
	autobuffer out;
	size_t size;

	buffer_init(&out, SIZE_MAX);
	assert_int_equal(report_pprof(sealed_sources(f), &f->options, &out, &summary), 0);
	assert_int_equal(
		libdeflate_gzip_decompress(d, out.bytes, out.size, plain, 1 << 20, &size), 0);
	libdeflate_free_decompressor(d);
	message = perftools__profiles__profile__unpack(NULL, size, plain);
	assert_non_null(message);
	return message;
}

static void assert_line(const Perftools__Profiles__Profile *m,
	const Perftools__Profiles__Line *line, const char *name, int64_t number)
{
	const Perftools__Profiles__Function *function = m->function[line->function_id - 1];

	assert_string_equal(m->string_table[function->name], name);
	assert_string_equal(m->string_table[function->filename], "app.vm");
	assert_int_equal(line->line, number);
}

static void a_runtimes_frame_is_a_location_with_its_lines(void **state)
{
	struct fixture *f = *state;
	const Perftools__Profiles__Location *location;
	Perftools__Profiles__Profile *m;
	struct abi_frame later = sampled;

	f->runtime_names = test_runtime_names;
	later.position++;
	add_runtime_stack(f, f->one, &sampled);
	add_runtime_stack(f, f->one, &later);
	m = pprof_of(f);
	assert_int_equal(m->n_sample, 2);
	location = m->location[m->sample[0]->location_id[1] - 1];
	assert_int_equal(location->address, code);
	assert_string_equal(
		m->string_table[m->mapping[location->mapping_id - 1]->filename], "[testvm]");
	assert_int_equal(location->n_line, 2);
	assert_line(m, location->line[0], "inner", 0xef);
	assert_line(m, location->line[1], "Outer.run", 17);
	location = m->location[m->sample[1]->location_id[1] - 1];
	assert_line(m, location->line[0], "inner", 0xf0);
	perftools__profiles__profile__free_unpacked(m, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_one_and_of_two_words_mix),
		cmocka_unit_test(without_the_flag_every_word_is_a_pc),
		cmocka_unit_test(addresses_of_the_kernels_half_are_pcs),
		cmocka_unit_test(a_frame_that_the_depth_limit_cut_is_left_out),
		cmocka_unit_test_setup_teardown(
			every_word_of_a_runtimes_frame_is_compared, report_setup, report_teardown),
		cmocka_unit_test_setup_teardown(
			a_runtimes_frame_comes_back_whole, report_setup, report_teardown),
		cmocka_unit_test_setup_teardown(native_and_kernel_frames_belong_to_no_runtime,
			report_setup, report_teardown),
		cmocka_unit_test_setup_teardown(
			the_same_frame_has_the_names_of_its_process, report_setup, report_teardown),
		cmocka_unit_test_setup_teardown(without_a_runtime_that_names_them_frames_stay,
			report_setup, report_teardown),
		cmocka_unit_test_setup_teardown(a_runtimes_frame_is_a_location_with_its_lines,
			report_setup, report_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
