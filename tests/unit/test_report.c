/* SPDX-License-Identifier: Apache-2.0 */
/* agent/report's pprof, decoded with the generated code and compared with the samples. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "agent/sampler/probes/probes.h"
#include "agent/sampler/profile/sample_labels.h"
#include "base/cleanup.h"
#include "tests/unit/report_decoded.h"
#include "tests/unit/report_fixture.h"

/* ---- reading the answer ---- */

/* ---- pprof ---- */

static void test_file_addresses_become_elf_addresses_with_lines(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN + 0x90, 0, f);

	add_user(f, f->one, &frame, 1);

	automessage *m = pprof_of(f, NULL);
	const Perftools__Profiles__Location *location = location_at(m, 0, 0);
	const Perftools__Profiles__Mapping *mapping = mapping_at(m, 0, 0);

	assert_int_equal(location->address, MAIN + 0x90 + SEGMENT_ADDRESS - SEGMENT_OFFSET);
	assert_string_equal(file_at(m, 0, 0), "/bin/program");
	assert_int_equal(mapping->memory_start, SEGMENT_ADDRESS);
	assert_int_equal(mapping->memory_limit, SEGMENT_ADDRESS + SEGMENT_SIZE);
	assert_int_equal(mapping->file_offset, SEGMENT_OFFSET);
	assert_string_equal(m->string_table[mapping->build_id], "01000000");
	assert_true(mapping->has_functions && mapping->has_inline_frames);
	assert_int_equal(location->n_line, 2);
	assert_string_equal(name_at(m, 0, 0, 0), "inner");
	assert_string_equal(name_at(m, 0, 0, 1), "main");
	assert_int_equal(location->line[0]->line, 7);
	assert_int_equal(location->line[1]->line, 42);
	assert_int_equal(function_at(m, 0, 0, 1)->start_line, 10);
}

static void test_a_caller_is_looked_up_at_its_call(void **state)
{
	struct fixture *f = *state;
	/* The call is the last byte of main; at the return address there is no function. */
	struct profile_frame frame = in_program(MAIN + 0x100, PROFILE_FRAME_RETURN, f);

	add_user(f, f->one, &frame, 1);

	automessage *m = pprof_of(f, NULL);

	assert_string_equal(name_at(m, 0, 0, 1), "main");
	assert_int_equal(
		location_at(m, 0, 0)->address, MAIN + 0xff + SEGMENT_ADDRESS - SEGMENT_OFFSET);
}

static void test_code_without_a_symbol_stays_an_address(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(NAMELESS, 0, f);

	add_user(f, f->one, &frame, 1);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(location_at(m, 0, 0)->n_line, 0);
	assert_string_equal(file_at(m, 0, 0), "/bin/program");
	assert_false(mapping_at(m, 0, 0)->has_functions);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NO_SYMBOL), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NAMED), 0);
}

static void test_module_without_an_index_keeps_file_offsets(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = { 0x1234, f->library->number, 0 };

	add_user(f, f->one, &frame, 1);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(location_at(m, 0, 0)->address, 0x1234);
	assert_int_equal(location_at(m, 0, 0)->n_line, 0);
	assert_int_equal(mapping_at(m, 0, 0)->memory_start, 0);
	assert_int_equal(mapping_at(m, 0, 0)->file_offset, 0);
	assert_string_equal(m->string_table[mapping_at(m, 0, 0)->build_id], "02000000");
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NO_INDEX), 1);
}

static void test_kernel_module_and_bpf_frames_have_their_own_mappings(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = {
		in_kernel(2, 0),
		{ UINT64_C(0xffffffffc0001010), PROFILE_MODULE_KERNEL, PROFILE_FRAME_RETURN },
		{ UINT64_C(0xffffffffc0000010), PROFILE_MODULE_KERNEL, PROFILE_FRAME_RETURN },
		in_kernel(1, PROFILE_FRAME_RETURN),
		in_program(MAIN, 0, f),
	};
	struct profile_stack stack = { frames, 5, 4, 0 };

	add_stack(f, f->one, &stack, 3);

	automessage *m = pprof_of(f, NULL);
	static const char *const names[] = { "vfs_read", "bpf_prog_1234", "nf_hook",
		"do_syscall_64", "main" };
	static const char *const files[] = { "[kernel.kallsyms]", "[bpf_prog_1234]", "[nf_tables]",
		"[kernel.kallsyms]", "/bin/program" };
	static const uint64_t offsets[] = { 0xf, 0xf };

	assert_int_equal(m->n_sample, 1);
	assert_int_equal(m->sample[0]->n_location_id, 6);
	assert_string_equal(name_at(m, 0, 5, 0), "[truncated: no_root]");
	for (size_t i = 0; i < 5; i++) {
		assert_string_equal(name_at(m, 0, i, 0), names[i]);
		assert_string_equal(file_at(m, 0, i), files[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		assert_int_equal(mapping_at(m, 0, 1 + i)->memory_start, LINK_IMAGES);
		assert_int_equal(mapping_at(m, 0, 1 + i)->memory_limit, LINK_IMAGES_END);
		assert_int_equal(location_at(m, 0, 1 + i)->address, LINK_IMAGES + offsets[i]);
	}
	assert_int_equal(mapping_at(m, 0, 0)->memory_start, KERNEL_LINKED);
	assert_int_equal(mapping_at(m, 0, 0)->memory_limit, KERNEL_LINKED + 0x3000);
	assert_int_equal(location_at(m, 0, 0)->address, KERNEL_LINKED + 0x2010);
	assert_int_equal(m->sample[0]->value[0], 3);
	assert_int_equal(m->sample[0]->value[1], 30303030);
}

/*
 * A fault may come at the first instruction of a function, which is no return into the one before.
 * The fault's own caller, further in, is one.
 */
static void test_what_a_fault_interrupted_is_no_return_address(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = {
		in_kernel(2, 0),
		{ FAULT_ENTRY + 0x10, PROFILE_MODULE_KERNEL, PROFILE_FRAME_RETURN },
		{ KERNEL_NUMBER, PROFILE_MODULE_KERNEL, PROFILE_FRAME_RETURN },
		{ KERNEL_NUMBER, PROFILE_MODULE_KERNEL, PROFILE_FRAME_RETURN },
	};
	static const char *const names[] = { "vfs_read", "asm_exc_page_fault", "number",
		"put_dec" };
	static const uint64_t calls[] = { 0x2010, 0x291f, 0x2b00, 0x2aff };
	struct profile_stack stack = { frames, 4, 4, 0 };

	add_stack(f, f->one, &stack, 1);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(m->sample[0]->n_location_id, 4);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_string_equal(name_at(m, 0, i, 0), names[i]);
		assert_int_equal(location_at(m, 0, i)->address, KERNEL_LINKED + calls[i]);
	}
}

/* Outside of the entry code of a system call are user frames, which keep what they are. */
static void test_user_frames_below_the_kernels_entry_keep_their_flags(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = {
		in_kernel(2, 0),
		{ FAULT_ENTRY + 0x10, PROFILE_MODULE_KERNEL, PROFILE_FRAME_RETURN },
		in_program(MAIN + 0x100, PROFILE_FRAME_RETURN, f),
	};
	struct profile_stack stack = { frames, 3, 2, 0 };

	add_stack(f, f->one, &stack, 1);

	automessage *m = pprof_of(f, NULL);

	assert_string_equal(name_at(m, 0, 2, 1), "main");
}

static void test_programs_at_one_kernel_address_are_two_locations(void **state)
{
	struct fixture *f = *state;
	struct kallsyms *k = f->kallsyms;
	const uint64_t kaddr = UINT64_C(0xffffffffc7000000);

	for (int i = 0; i < 2; i++) {
		const struct kallsyms_event came = { kaddr, 64, true, i ? "bpf_b" : "bpf_a", 1 };

		assert_int_equal(kallsyms_add(k, &came), 0);

		struct profile_frame frame = { kaddr + 8, PROFILE_MODULE_KERNEL,
			kallsyms_tenant(k, kaddr) << PROFILE_FRAME_TENANT_SHIFT };
		struct profile_stack stack = { &frame, 1, 1, 0 };

		add_stack(f, f->one, &stack, 1 + i);
	}

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(m->n_sample, 2);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(
			name_at(m, i, 0, 0), m->sample[i]->value[0] == 1 ? "bpf_a" : "bpf_b");
}

static void test_kernel_address_outside_everything_has_no_mapping(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = { UINT64_C(0xffff888000001000), PROFILE_MODULE_KERNEL, 0 };
	struct profile_stack stack = { &frame, 1, 1, 0 };

	add_stack(f, f->one, &stack, 1);

	automessage *m = pprof_of(f, NULL);

	assert_null(mapping_at(m, 0, 0));
	assert_int_equal(location_at(m, 0, 0)->address, LINK_UNKNOWN);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_UNKNOWN_MAPPING), 1);
}

static void test_without_kallsyms_kernel_frames_have_no_address(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_kernel(1, 0);
	struct profile_stack stack = { &frame, 1, 1, 0 };

	f->no_kernel_symbols = true;
	add_stack(f, f->one, &stack, 1);

	automessage *m = pprof_of(f, NULL);

	assert_string_equal(file_at(m, 0, 0), "[kernel.kallsyms]");
	assert_int_equal(location_at(m, 0, 0)->n_line, 0);
	assert_false(mapping_at(m, 0, 0)->has_functions);
	assert_int_equal(mapping_at(m, 0, 0)->memory_start, LINK_UNKNOWN);
	assert_int_equal(location_at(m, 0, 0)->address, LINK_UNKNOWN);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NO_INDEX), 1);
}

static void test_jit_code_is_named_in_its_own_process_only(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = { JIT_PC + 4, f->anon->number, 0 };

	add_user(f, f->two, &frame, 1);
	add_user(f, f->one, &frame, 1);

	automessage *m = pprof_of(f, NULL);
	size_t two = label_of(m, 0, "pid")->num == 200 ? 0 : 1, one = 1 - two;

	assert_int_equal(m->n_sample, 2);
	assert_string_equal(name_at(m, one, 0, 0), "LazyCompile:*foo /src/a.js:12");
	assert_string_equal(file_at(m, one, 0), "[jit]");
	assert_int_equal(location_at(m, two, 0)->n_line, 0);
	assert_string_equal(file_at(m, two, 0), "[anon]");
	assert_int_equal(location_at(m, two, 0)->address, JIT_PC + 4);
}

/* The unread part may name another function at the address. */
static void test_a_map_that_is_not_read_to_its_end_names_nothing(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = { JIT_PC + 4, f->anon->number, 0 };
	autoclose int fd = memfd_create("perf-1.map", MFD_CLOEXEC);

	assert_int_equal(dprintf(fd, "7000 100 before\n"), 16);
	assert_int_equal(ftruncate(fd, INT64_C(1) << 40), 0);
	assert_int_equal(perf_map_update(f->jit, fd), -EAGAIN);
	add_user(f, f->one, &frame, 1);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(location_at(m, 0, 0)->n_line, 0);
	assert_string_equal(file_at(m, 0, 0), "[anon]");
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_MAP_UNREAD), 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NO_SYMBOL), 0);
}

/* Each frame counts once, under its outcome. */
static void assert_outcomes(
	const struct fixture *f, uint64_t named, uint64_t no_symbol, uint64_t no_mapping)
{
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NAMED), named);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NO_SYMBOL), no_symbol);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_UNKNOWN_MAPPING), no_mapping);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_NO_INDEX), 0);
}

/* The mapping is known, but nothing in it has a name. */
static void test_code_in_no_file_without_a_name_lacks_a_symbol(void **state)
{
	struct fixture *f = *state;
	struct profile_frame anon = { JIT_PC + 4, f->anon->number, 0 };
	struct profile_frame outside = { JIT_PC + 0x100000, f->anon->number, 0 };
	struct profile_frame vsyscall = { 0xffffffffff600000, f->vsyscall->number, 0 };

	add_user(f, f->two, &anon, 1);
	add_user(f, f->one, &outside, 1);
	add_user(f, f->one, &vsyscall, 1);
	add_user(f, f->one, &anon, 1); /* has a perf map */

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(m->n_sample, 4);
	assert_outcomes(f, 1, 3, 0);
}

static void test_special_and_unmapped_addresses(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { { 0x1234, PROFILE_MODULE_NONE, 0 },
		{ 0xffffffffff600000, f->vsyscall->number, 0 } };

	add_user(f, f->one, frames, 2);

	automessage *m = pprof_of(f, NULL);

	assert_null(mapping_at(m, 0, 0));
	assert_int_equal(location_at(m, 0, 0)->address, 0x1234);
	assert_string_equal(file_at(m, 0, 1), "[vsyscall]");
	assert_outcomes(f, 0, 1, 1);
}

static void test_callers_in_no_mapping_are_left_out_and_counted(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_program(MAIN, 0, f),
		{ 0x1, PROFILE_MODULE_NONE, PROFILE_FRAME_RETURN },
		in_program(START + 5, PROFILE_FRAME_RETURN, f),
		{ 0x801f0f00, PROFILE_MODULE_NONE, PROFILE_FRAME_RETURN },
		{ 0x7f, PROFILE_MODULE_NONE, PROFILE_FRAME_RETURN } };
	struct profile_frame nowhere[] = { { 0x1, PROFILE_MODULE_NONE, 0 },
		{ 0x2, PROFILE_MODULE_NONE, PROFILE_FRAME_RETURN } };

	add_user(f, f->one, frames, 5);
	add_user(f, f->one, nowhere, 2);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(m->sample[0]->n_location_id, 3);
	assert_string_equal(name_at(m, 0, 2, 0), "_start");
	/* The pc itself is kept, wherever it is. */
	assert_int_equal(m->sample[1]->n_location_id, 2); /* and its mark */
	assert_int_equal(location_at(m, 1, 0)->address, 1);
	assert_int_equal(metrics_get(&f->metrics, METRIC_FRAMES_UNKNOWN_MAPPING), 5);
}

static void test_labels_are_those_of_the_interface(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_stack stack = { &frame, 1, 0, 0 };
	struct profile_sample sample = { .process = f->two->number,
		.pid = 200,
		.tid = 201,
		.cpu = 3,
		.fiber_id = 17,
		.comm = "worker",
		.count = 1,
		.weight = 1 };

	snprintf(f->two->container_id, sizeof(f->two->container_id), "c0ffee");
	assert_int_equal(profile_stack(f->profile, &stack, &sample.stack), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
	add_user(f, f->one, &frame, 1);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(label_of(m, 0, "pid")->num, 200);
	assert_int_equal(label_of(m, 0, "tid")->num, 201);
	assert_int_equal(label_of(m, 0, "goid")->num, 17);
	assert_int_equal(label_of(m, 0, "cpu")->num, 3);
	assert_int_not_equal(label_of(m, 0, "goid")->num_unit, 0);
	assert_string_equal(m->string_table[label_of(m, 0, "comm")->str], "two");
	assert_string_equal(m->string_table[label_of(m, 0, "thread_comm")->str], "worker");
	assert_string_equal(m->string_table[label_of(m, 0, "container_id")->str], "c0ffee");
	assert_null(label_of(m, 1, "goid"));
	assert_null(label_of(m, 1, "container_id"));
	assert_int_equal(label_of(m, 1, "cpu")->num, 0);
	assert_int_not_equal(label_of(m, 1, "cpu")->num_unit, 0);
}

static void test_head_of_cpu_and_cycles_profiles(void **state)
{
	struct fixture *f = *state;
	static const char *const types[] = { "cpu", "cycles" }, *const units[] = { "nanoseconds",
		"count" };

	f->options.comment = "by hand";
	for (int cycles = 0; cycles < 2; cycles++) {
		f->options.types = sample_types_of(cycles, false);

		automessage *m = pprof_of(f, NULL);

		assert_int_equal(m->n_sample_type, 2);
		assert_string_equal(m->string_table[m->sample_type[0]->type], "samples");
		assert_string_equal(m->string_table[m->sample_type[1]->type], types[cycles]);
		assert_string_equal(m->string_table[m->sample_type[1]->unit], units[cycles]);
		assert_string_equal(m->string_table[m->period_type->type], types[cycles]);
		assert_string_equal(m->string_table[m->default_sample_type], types[cycles]);
		assert_string_equal(m->string_table[m->comment[0]], "by hand");
		assert_int_equal(m->period, 10101010);
	}
}

static void test_report_of_a_window_has_its_times_and_period(void **state)
{
	struct fixture *f = *state;
	const struct sealed_window window = {
		.number = 3,
		.began_ns = 5000,
		.ended_ns = 7500,
		.began_real_ns = 1700000000000000000,
		.period = 52631578,
		.types = sample_types_of(true, true),
		.profile = f->profile,
	};
	struct profile_frame frame = in_program(MAIN, 0, f);

	add_user(f, f->one, &frame, 1);
	f->options = report_window_options(&window);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(m->time_nanos, 1700000000000000000);
	assert_int_equal(m->duration_nanos, 2500);
	assert_int_equal(m->period, 52631578);
	assert_int_equal(m->n_sample_type, 4);
	assert_string_equal(m->string_table[m->period_type->type], "cycles");
}

/* Nine samples of 10 ms and one of 100 ms stand for 190 ms, 19 ms each. */
static void test_period_of_a_changed_frequency_is_the_mean(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_stack stack = { &frame, 1, 0, 0 };
	struct profile_sample sample = {
		.process = f->one->number, .count = 9, .weight = 90000000
	};

	f->options.period = 100000000;
	f->options.types = sample_types_of(false, true);
	assert_int_equal(profile_stack(f->profile, &stack, &sample.stack), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
	sample.count = 1;
	sample.weight = 100000000;
	assert_int_equal(profile_add(f->profile, &sample), 0);
	add_wait(f, f->one, &stack, 7000);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(m->period, 19000000);
	assert_int_equal(m->n_comment, 1);
	assert_non_null(strstr(m->string_table[m->comment[0]], "frequency changed"));
}

static bool of_process(void *context, const struct profile_sample *sample)
{
	return sample->process == *(uint32_t *)context;
}

/* Excluded samples do not count, and cycles are no time. */
static void test_period_is_that_of_what_is_in_the_profile(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN, 0, f);

	add_user(f, f->one, &frame, 1);
	f->options.period = 77;
	f->options.include = of_process;
	f->options.include_context = &f->two->number;
	for (int cycles = 0; cycles < 2; cycles++) {
		f->options.types = sample_types_of(cycles, false);
		if (cycles)
			f->options.include = NULL;

		automessage *m = pprof_of(f, NULL);

		assert_int_equal(m->period, 77);
		assert_int_equal(m->n_comment, 0);
	}
}

static void test_file_hashes_are_comments_on_their_mappings(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN, 0, f);
	char comment[FILE_HASH_COMMENT_BYTES];

	add_user(f, f->one, &frame, 1);
	add_user(f, f->two, &frame, 1);
	for (int asked = 0; asked < 2; asked++) {
		f->options.file_hashes = asked;

		automessage *m = pprof_of(f, NULL);

		assert_int_equal(m->n_comment, asked);
		assert_int_equal(m->n_mapping, 1);
		if (!asked)
			continue;
		file_hash_comment(m->mapping[0]->id, PROGRAM_HASH, comment);
		assert_string_equal(m->string_table[m->comment[0]], comment);
	}
}

static void test_lost_frames_leave_a_marker_where_they_were(void **state)
{
	struct fixture *f = *state;
	struct profile_frame user = in_program(MAIN, 0, f), kernel = in_kernel(1, 0);
	struct profile_stack all = { NULL, 0, 0, PROFILE_STACK_MISSING };
	struct profile_stack lost_kernel = { &user, 1, 0, PROFILE_STACK_MISSING };
	struct profile_stack lost_user = { &kernel, 1, 1, PROFILE_STACK_MISSING };
	struct profile_stack none = { NULL, 0, 0, 0 };

	add_stack(f, f->one, &all, 1);
	add_stack(f, f->one, &lost_kernel, 1);
	add_stack(f, f->one, &lost_user, 1);
	add_stack(f, f->one, &none, 1);

	automessage *m = pprof_of(f, NULL);

	assert_string_equal(name_at(m, 0, 0, 0), "[frames lost]");
	assert_null(mapping_at(m, 0, 0));
	assert_string_equal(name_at(m, 1, 0, 0), "[frames lost]");
	assert_string_equal(name_at(m, 1, 1, 0), "main");
	assert_string_equal(name_at(m, 2, 0, 0), "do_syscall_64");
	assert_string_equal(name_at(m, 2, 1, 0), "[frames lost]");
	assert_string_equal(name_at(m, 3, 0, 0), "[no stack]");
}

static void test_summary_weighs_by_samples(void **state)
{
	struct fixture *f = *state;
	struct profile_frame whole[] = { in_program(MAIN, 0, f),
		in_program(START + 5, PROFILE_FRAME_RETURN, f) };
	struct profile_frame cut[] = { in_program(NAMELESS, 0, f),
		in_program(MAIN + 5, PROFILE_FRAME_RETURN, f) };
	struct profile_frame kernel = in_kernel(1, 0);
	struct profile_stack complete = { whole, 2, 0, 0 }, rootless = { cut, 2, 0, 0 };
	struct profile_stack deep = { cut, 1, 0, PROFILE_STACK_DEPTH };
	struct profile_stack early = { cut, 1, 0,
		ABI_UNWIND_NOT_LOADED << PROFILE_STACK_END_SHIFT };
	struct profile_stack kernel_only = { &kernel, 1, 1, 0 };
	struct report_summary summary;

	add_stack(f, f->one, &complete, 5);
	add_stack(f, f->one, &rootless, 3);
	add_stack(f, f->one, &deep, 2);
	add_stack(f, f->one, &early, 1);
	add_stack(f, f->one, &kernel_only, 7);

	automessage *m = pprof_of(f, &summary);

	/* Without their marks two of them would be alike. */
	assert_int_equal(m->n_sample, 5);
	assert_int_equal(summary.entries, 5);
	assert_int_equal(summary.of[SAMPLE_TYPE_TICKS].count, 18);
	assert_int_equal(summary.user_stacks, 11);
	assert_int_equal(summary.complete_stacks, 5);
	assert_int_equal(summary.user_frames, 11);
	assert_int_equal(summary.named_user_frames, 5);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STACKS_COMPLETE), 5);
	assert_int_equal(metrics_get(&f->metrics, METRIC_STACKS_TRUNCATED), 6);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_NO_ROOT), 3);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_DEPTH), 2);
	assert_int_equal(metrics_get(&f->metrics, METRIC_UNWIND_NOT_LOADED), 1);
}

static void test_waits_have_values_of_their_own(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_program(MAIN, 0, f),
		in_program(START + 5, PROFILE_FRAME_RETURN, f) };
	struct profile_stack stack = { frames, 2, 0, 0 }, other = { frames, 1, 0, 0 };
	struct report_summary summary;

	f->options.types = sample_types_of(false, true);
	add_stack(f, f->one, &stack, 5);
	add_wait(f, f->one, &other, 7000);
	add_wait(f, f->one, &other, 500);

	automessage *m = pprof_of(f, &summary);

	assert_int_equal(m->n_sample_type, 4);
	assert_string_equal(m->string_table[m->sample_type[2]->type], "waits");
	assert_string_equal(m->string_table[m->sample_type[2]->unit], "count");
	assert_string_equal(m->string_table[m->sample_type[3]->type], "off_cpu");
	assert_string_equal(m->string_table[m->sample_type[3]->unit], "nanoseconds");
	assert_string_equal(m->string_table[m->default_sample_type], "cpu");
	assert_int_equal(m->n_sample, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(m->sample[i]->n_value, 4);
	assert_int_equal(m->sample[0]->value[0], 5);
	assert_int_equal(m->sample[0]->value[1], 5 * 10101010);
	assert_int_equal(m->sample[0]->value[2], 0);
	assert_int_equal(m->sample[0]->value[3], 0);
	assert_int_equal(m->sample[1]->value[0], 0);
	assert_int_equal(m->sample[1]->value[1], 0);
	assert_int_equal(m->sample[1]->value[2], 2);
	assert_int_equal(m->sample[1]->value[3], 7500);
	assert_int_equal(summary.of[SAMPLE_TYPE_TICKS].count, 5);
	assert_int_equal(summary.of[PROBE_off_cpu].count, 2);
	assert_int_equal(summary.of[PROBE_off_cpu].weight, 7500);
}

/* A probe whose records do not name the CPU has no label, as 0 would be a CPU. */
static void test_samples_have_only_the_labels_of_their_type(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_stack stack = { &frame, 1, 0, 0 };

	f->options.types = sample_types_of(false, true);
	f->options.types.of[PROBE_off_cpu].labels &= ~(1U << SAMPLE_LABEL_cpu);
	add_stack(f, f->one, &stack, 5);
	add_wait(f, f->one, &stack, 7000);

	automessage *m = pprof_of(f, NULL);

	assert_non_null(label_of(m, 0, "cpu"));
	assert_null(label_of(m, 1, "cpu"));
	assert_non_null(label_of(m, 1, "tid"));
}

/* A probe without the sampling of CPUs. */
static void test_window_without_ticks_has_the_values_of_its_probe(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN, 0, f);
	struct profile_stack stack = { &frame, 1, 0, 0 };

	f->options.types = sample_types_of(false, true);
	f->options.types.of[SAMPLE_TYPE_TICKS] = (struct sample_type){ 0 };
	add_stack(f, f->one, &stack, 5);
	add_wait(f, f->one, &stack, 7000);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(m->n_sample_type, 2);
	assert_string_equal(m->string_table[m->default_sample_type], "off_cpu");
	assert_string_equal(m->string_table[m->period_type->type], "off_cpu");
	assert_int_equal(m->n_sample, 1);
	assert_int_equal(m->sample[0]->value[0], 1);
	assert_int_equal(m->sample[0]->value[1], 7000);
}

static void test_first_mapping_is_the_busiest_program(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_kernel(2, 0), in_program(MAIN, 0, f) };
	struct profile_stack stack = { frames, 2, 1, 0 };

	f->two->executable = f->program;
	add_stack(f, f->one, &stack, 1);
	add_stack(f, f->two, &stack, 4);

	automessage *m = pprof_of(f, NULL);

	assert_string_equal(m->string_table[m->mapping[0]->filename], "/bin/program");
}

static void test_no_inlines_keeps_the_real_function(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frame = in_program(MAIN + 0x90, 0, f);

	f->options.no_inlines = true;
	add_user(f, f->one, &frame, 1);

	automessage *m = pprof_of(f, NULL);

	assert_int_equal(location_at(m, 0, 0)->n_line, 1);
	assert_string_equal(name_at(m, 0, 0, 0), "main");
	assert_false(mapping_at(m, 0, 0)->has_inline_frames);
}

static void test_stripped_program_is_complete_at_its_nameless_entry(void **state)
{
	struct fixture *f = *state;
	struct profile_frame entry = in_program(NAMELESS, PROFILE_FRAME_RETURN, f);
	struct profile_frame started[] = { in_program(MAIN, 0, f),
		in_program(LIBC_START + 9, PROFILE_FRAME_RETURN, f), entry };
	struct profile_frame not_started[] = { in_program(MAIN, 0, f), entry };
	struct profile_stack complete = { started, 3, 0, 0 }, cut = { not_started, 2, 0, 0 };
	struct report_summary summary;

	add_stack(f, f->one, &complete, 2);
	add_stack(f, f->one, &cut, 1);

	automessage *m = pprof_of(f, &summary);

	assert_int_equal(m->n_sample, 2);
	assert_int_equal(summary.complete_stacks, 2);
}

static void test_goroutine_that_was_left_is_no_caller(void **state)
{
	struct fixture *f = *state;
	struct profile_frame frames[] = { in_program(LIBC_START, 0, f),
		in_program(MCALL + 9, PROFILE_FRAME_RETURN, f),
		in_program(MAIN + 5, PROFILE_FRAME_RETURN, f) };
	struct profile_stack scheduler = { frames, 3, 0, 0 };
	struct report_summary summary;

	add_stack(f, f->one, &scheduler, 2);

	automessage *m = pprof_of(f, &summary);

	assert_int_equal(m->sample[0]->n_location_id, 2);
	assert_string_equal(name_at(m, 0, 1, 0), "runtime.mcall");
	assert_int_equal(summary.complete_stacks, 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_file_addresses_become_elf_addresses_with_lines),
		CASE(test_a_caller_is_looked_up_at_its_call),
		CASE(test_code_without_a_symbol_stays_an_address),
		CASE(test_module_without_an_index_keeps_file_offsets),
		CASE(test_kernel_module_and_bpf_frames_have_their_own_mappings),
		CASE(test_what_a_fault_interrupted_is_no_return_address),
		CASE(test_user_frames_below_the_kernels_entry_keep_their_flags),
		CASE(test_programs_at_one_kernel_address_are_two_locations),
		CASE(test_kernel_address_outside_everything_has_no_mapping),
		CASE(test_without_kallsyms_kernel_frames_have_no_address),
		CASE(test_jit_code_is_named_in_its_own_process_only),
		CASE(test_a_map_that_is_not_read_to_its_end_names_nothing),
		CASE(test_code_in_no_file_without_a_name_lacks_a_symbol),
		CASE(test_special_and_unmapped_addresses),
		CASE(test_callers_in_no_mapping_are_left_out_and_counted),
		CASE(test_labels_are_those_of_the_interface),
		CASE(test_head_of_cpu_and_cycles_profiles),
		CASE(test_report_of_a_window_has_its_times_and_period),
		CASE(test_period_of_a_changed_frequency_is_the_mean),
		CASE(test_period_is_that_of_what_is_in_the_profile),
		CASE(test_file_hashes_are_comments_on_their_mappings),
		CASE(test_lost_frames_leave_a_marker_where_they_were),
		CASE(test_summary_weighs_by_samples),
		CASE(test_waits_have_values_of_their_own),
		CASE(test_samples_have_only_the_labels_of_their_type),
		CASE(test_window_without_ticks_has_the_values_of_its_probe),
		CASE(test_first_mapping_is_the_busiest_program),
		CASE(test_no_inlines_keeps_the_real_function),
		CASE(test_stripped_program_is_complete_at_its_nameless_entry),
		CASE(test_goroutine_that_was_left_is_no_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
