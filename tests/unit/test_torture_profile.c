/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/profile and agent/report while each allocation and each system call fails in turn.
 */
#include "tests/unit/torture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/report_fixture.h"

/* ---- profile -------------------------------------------------------------------------------- */

enum { STACKS = 200, FRAMES = 5 };

struct profiling {
	struct profile *profile;
	uint32_t taken; /* stacks whose sample was added */
};

static int add_one(struct profile *p, uint32_t number)
{
	struct profile_frame frames[FRAMES] = { 0 };
	const struct profile_stack stack = { .frames = frames, .frame_count = FRAMES };
	struct profile_sample sample = { .pid = 7, .tid = number, .count = 1, .weight = 10 };
	int err;

	for (uint32_t i = 0; i < FRAMES; i++)
		frames[i] = (struct profile_frame){ number * 100 + i, 7, 0 };
	err = profile_stack(p, &stack, &sample.stack);
	if (!err)
		err = profile_cache_stack(p, number + 1, 0, 1, sample.stack);
	return err ? err : profile_add(p, &sample);
}

static int add_from(struct profiling *f, uint32_t first)
{
	for (uint32_t i = first; i < STACKS; i++) {
		int err = add_one(f->profile, i);

		if (err)
			return err;
		f->taken++;
	}
	return 0;
}

static void begin_profile(void *context)
{
	*(struct profiling *)context = (struct profiling){ 0 };
}

static int create_and_add(void *context)
{
	struct profiling *f = context;
	int err = profile_create(64 << 20, &f->profile);

	return err ? err : add_from(f, 0);
}

/* Refused samples can be added again, and none is there twice. */
static void each_sample_is_there_once(void *context, int result)
{
	struct profiling *f = context;

	if (!f->profile) {
		assert_true(result < 0);
		return;
	}
	assert_int_equal(profile_total_count(f->profile), f->taken);
	assert_int_equal(add_from(f, f->taken), 0);
	assert_int_equal(profile_total_count(f->profile), STACKS);
	assert_int_equal(profile_sample_count(f->profile), STACKS);
	for (uint32_t i = 0; i < STACKS; i++) {
		const struct profile_sample *s = profile_sample_at(f->profile, i);
		struct profile_stack stack = profile_stack_at(f->profile, s->stack);

		assert_int_equal(stack.frame_count, FRAMES);
		assert_int_equal(stack.frames[0].address, s->tid * 100);
	}
	profile_destroy(f->profile);
}

static void a_sample_that_was_refused_can_be_added_again(void **state)
{
	struct profiling f;
	struct torture t = { .begin = begin_profile,
		.operation = create_and_add,
		.end = each_sample_is_there_once,
		.context = &f };

	(void)state;
	torture_run(&t);
}

/* ---- report --------------------------------------------------------------------------------- */

struct reporting {
	struct fixture *f;
	struct buffer out, reference;
	struct report_summary summary;
	int (*write)(struct reporting *r);
};

/* If the build IDs of the kernel and its modules cannot be read, they are left out. */
static const char kernel_files[] = "openat open read pread fstat realloc";

static int write_pprof(struct reporting *r)
{
	return report_pprof(&r->f->sources, &r->f->options, &r->out, &r->summary);
}

static int write_folded(struct reporting *r)
{
	return report_folded(
		&r->f->sources, &r->f->options, SAMPLE_TYPE_TICKS, &r->out, &r->summary);
}

static void begin_report(void *context)
{
	struct reporting *r = context;

	known_sources(r->f);
	buffer_init(&r->out, 1 << 20);
}

static void begin_first_report(void *context)
{
	struct reporting *r = context;

	sealed_sources(r->f);
	buffer_init(&r->out, 1 << 20);
}

static int write_report(void *context)
{
	struct reporting *r = context;

	return r->write(r);
}

/* The output is either complete, to the byte, or an error. */
static void end_report(void *context, int result)
{
	struct reporting *r = context;
	const char *failed = torture_failed();

	if (!result && !(failed && strstr(kernel_files, failed))) {
		assert_int_equal(r->out.size, r->reference.size);
		assert_memory_equal(r->out.bytes, r->reference.bytes, r->out.size);
	}
	buffer_deinit(&r->out);
	unseal(r->f);
}

static void torture_report(void **state, int (*write)(struct reporting *r),
	void (*begin)(void *context), const char *optional)
{
	struct fixture *f = *state;
	struct reporting r = { .f = f, .write = write };
	struct torture t = { .begin = begin,
		.operation = write_report,
		.end = end_report,
		.context = &r,
		.optional = optional };
	struct profile_frame frames[] = { in_program(MAIN + 0x90, 0, f),
		in_program(START, PROFILE_FRAME_RETURN, f), { JIT_PC, f->anon->number, 0 } };
	struct profile_frame kernel[] = { in_kernel(1, 0), in_program(MAIN, 0, f) };
	const struct profile_stack stack = {
		.frames = kernel, .frame_count = 2, .kernel_count = 1
	};

	add_user(f, f->one, frames, ARRAY_SIZE(frames));
	add_stack(f, f->two, &stack, 3);
	begin_report(&r);
	assert_int_equal(write_report(&r), 0);
	r.reference = r.out;
	torture_run(&t);
	buffer_deinit(&r.reference);
}

static void a_pprof_is_whole_or_fails(void **state)
{
	torture_report(state, write_pprof, begin_report, kernel_files);
}

static void folded_text_is_whole_or_fails(void **state)
{
	torture_report(state, write_folded, begin_report, kernel_files);
}

/* Without memory to keep names for the next report there are names all the same. */
static void a_first_report_is_whole_or_fails(void **state)
{
	torture_report(state, write_folded, begin_first_report,
		"openat open read pread fstat realloc malloc calloc");
}

static int find_hottest(void *context)
{
	struct reporting *r = context;
	struct report_hot *list;
	size_t count;
	int err = report_hottest(&r->f->sources, &list, 10, &count);

	if (err)
		return err;
	assert_int_equal(count, 2); /* and the mark of its cut stack */
	assert_string_equal(list[0].name, "main");
	report_hottest_free(list, count);
	return 0;
}

static void end_hottest(void *context, int result)
{
	struct reporting *r = context;

	(void)result;
	unseal(r->f);
}

static void the_hottest_functions_are_named_or_it_fails(void **state)
{
	struct fixture *f = *state;
	struct reporting r = { .f = f };
	struct torture t = { .begin = begin_report,
		.operation = find_hottest,
		.end = end_hottest,
		.context = &r,
		.optional = kernel_files };
	struct profile_frame frame = in_program(MAIN, 0, f);

	add_user(f, f->one, &frame, 1);
	torture_run(&t);
}

static int teardown(void **state)
{
	torture_teardown(state);
	return report_teardown(state);
}

#define report_test(function) cmocka_unit_test_setup_teardown(function, report_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_sample_that_was_refused_can_be_added_again),
		report_test(a_pprof_is_whole_or_fails),
		report_test(folded_text_is_whole_or_fails),
		report_test(a_first_report_is_whole_or_fails),
		report_test(the_hottest_functions_are_named_or_it_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
