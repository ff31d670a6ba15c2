/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/profile.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"

enum { LIMIT_BYTES = 64 * 1024 * 1024, MANY = 5000 };

static struct profile *make_profile(size_t limit_bytes)
{
	struct profile *p;

	assert_int_equal(profile_create(limit_bytes, &p), 0);
	return p;
}

static struct abi_stack *make_raw(uint32_t window, uint64_t id, uint32_t frame_count)
{
	struct abi_stack *raw = calloc(1, sizeof(*raw) + frame_count * sizeof(uint64_t));

	assert_non_null(raw);
	raw->kind = ABI_STACK;
	raw->window = window;
	raw->id = id;
	raw->frame_count = frame_count;
	for (uint32_t i = 0; i < frame_count; i++)
		raw->frames[i] = id * 1000 + i;
	return raw;
}

static int put_raw(struct profile *p, uint32_t window, uint64_t id, uint32_t frame_count)
{
	autofree struct abi_stack *raw = make_raw(window, id, frame_count);

	return profile_put_raw(p, raw);
}

/* A stack whose frames begin at ADDRESS. */
static int get_stack(struct profile *p, uint64_t address, uint32_t frame_count, uint32_t *ret)
{
	struct profile_frame frames[64] = { 0 };
	const struct profile_stack stack = { .frames = frames, .frame_count = frame_count };

	assert_true(frame_count <= ARRAY_SIZE(frames));
	for (uint32_t i = 0; i < frame_count; i++)
		frames[i] = (struct profile_frame){ address + i, 7, PROFILE_FRAME_RETURN };
	return profile_stack(p, &stack, ret);
}

static uint32_t stack_number(struct profile *p, uint64_t address)
{
	uint32_t number;

	assert_int_equal(get_stack(p, address, 3, &number), 0);
	return number;
}

static void keeps_raw_stacks_by_window_and_id(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	const struct abi_stack *found;

	(void)state;
	assert_int_equal(put_raw(p, 1, 77, 3), 0);
	assert_int_equal(put_raw(p, 2, 77, 5), 0);
	found = profile_get_raw(p, 1, 77);
	assert_non_null(found);
	assert_int_equal(found->frame_count, 3);
	assert_int_equal(found->frames[2], 77002);
	assert_int_equal(profile_get_raw(p, 2, 77)->frame_count, 5);
	assert_null(profile_get_raw(p, 1, 78));
	assert_null(profile_get_raw(p, 3, 77));
	profile_destroy(p);
}

static void a_third_window_takes_the_oldest_ones_place(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);

	(void)state;
	assert_int_equal(put_raw(p, 1, 5, 1), 0);
	assert_int_equal(put_raw(p, 2, 5, 1), 0);
	assert_int_equal(put_raw(p, 3, 5, 1), 0);
	assert_null(profile_get_raw(p, 1, 5));
	assert_non_null(profile_get_raw(p, 2, 5));
	assert_non_null(profile_get_raw(p, 3, 5));
	assert_int_equal(put_raw(p, 1, 5, 1), -ENOENT);
	assert_non_null(profile_get_raw(p, 2, 5));
	profile_destroy(p);
}

static void drops_raw_stacks_before_a_window(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);

	(void)state;
	put_raw(p, 4, 5, 1);
	put_raw(p, 5, 5, 1);
	profile_drop_raw(p, 5);
	assert_null(profile_get_raw(p, 4, 5));
	assert_non_null(profile_get_raw(p, 5, 5));
	profile_destroy(p);
}

static void refuses_raw_stacks_that_make_no_sense(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);

	(void)state;
	assert_int_equal(put_raw(p, 0, 5, 1), -EINVAL);
	assert_int_equal(put_raw(p, 1, 0, 1), -EINVAL);
	assert_int_equal(put_raw(p, 1, 5, ABI_MAX_FRAMES + 1), -EINVAL);
	assert_int_equal(put_raw(p, 1, 5, ABI_MAX_FRAMES), 0);
	assert_int_equal(put_raw(p, 1, 6, 0), 0);
	assert_null(profile_get_raw(p, 0, 5));
	profile_destroy(p);
}

static void equal_stacks_have_one_number(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	uint32_t a = stack_number(p, 1000), b = stack_number(p, 2000);
	struct profile_stack found;

	(void)state;
	assert_int_not_equal(a, b);
	assert_int_equal(stack_number(p, 1000), a);
	assert_int_equal(profile_stack_count(p), 2);
	found = profile_stack_at(p, b);
	assert_int_equal(found.frame_count, 3);
	assert_int_equal(found.frames[2].address, 2002);
	assert_int_equal(found.frames[2].module, 7);
	assert_int_equal(profile_stack_at(p, 2).frame_count, 0);
	profile_destroy(p);
}

static void stacks_differ_by_each_part(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	struct profile_frame frames[2] = { { 1, 1, 0 }, { 2, 1, 0 } };
	struct profile_stack stack = { .frames = frames, .frame_count = 2 };
	uint32_t numbers[6];

	(void)state;
	profile_stack(p, &stack, &numbers[0]);
	stack.kernel_count = 1;
	profile_stack(p, &stack, &numbers[1]);
	stack.flags = PROFILE_STACK_DEPTH;
	profile_stack(p, &stack, &numbers[2]);
	frames[1].flags = PROFILE_FRAME_RETURN;
	profile_stack(p, &stack, &numbers[3]);
	frames[1].module = PROFILE_MODULE_KERNEL;
	profile_stack(p, &stack, &numbers[4]);
	stack.frame_count = 1;
	profile_stack(p, &stack, &numbers[5]);
	assert_int_equal(profile_stack_count(p), 6);
	assert_int_equal(profile_stack_at(p, numbers[2]).flags, PROFILE_STACK_DEPTH);
	assert_int_equal(profile_stack_at(p, numbers[1]).kernel_count, 1);
	profile_destroy(p);
}

/* With so many stacks, some collide in the few slots of the hash table. */
static void stacks_that_begin_alike_have_numbers_of_their_own(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	struct profile_frame frames[150];
	struct profile_stack stack = { .frames = frames };
	uint32_t number;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = (struct profile_frame){ i, 7, PROFILE_FRAME_RETURN };
	for (uint32_t i = 0; i < ARRAY_SIZE(frames); i++) {
		stack.frame_count = (uint32_t)ARRAY_SIZE(frames) - i;
		assert_int_equal(profile_stack(p, &stack, &number), 0);
		assert_int_equal(number, i);
		assert_int_equal(profile_stack_at(p, number).frame_count, stack.frame_count);
	}
	profile_destroy(p);
}

static void an_empty_stack_is_one_too(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	const struct profile_stack missing = { .flags = PROFILE_STACK_MISSING };
	const struct profile_stack wrong = { .kernel_count = 1 };
	uint32_t a, b;

	(void)state;
	assert_int_equal(profile_stack(p, &missing, &a), 0);
	assert_int_equal(profile_stack(p, &missing, &b), 0);
	assert_int_equal(a, b);
	assert_int_equal(profile_stack_at(p, a).flags, PROFILE_STACK_MISSING);
	assert_int_equal(profile_stack(p, &wrong, &a), -EINVAL);
	profile_destroy(p);
}

static void finds_cached_stacks_by_the_whole_key(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	uint32_t number;

	(void)state;
	assert_false(profile_cached_stack(p, 1, 2, 3, &number));
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(profile_cache_stack(p, i, i + 1, i % 3, (uint32_t)i), 0);
	for (uint64_t i = 0; i < MANY; i++) {
		assert_true(profile_cached_stack(p, i, i + 1, i % 3, &number));
		assert_int_equal(number, i);
	}
	assert_false(profile_cached_stack(p, 2, 1, 1, &number));
	assert_false(profile_cached_stack(p, 1, 2, 2, &number));
	profile_cache_stack(p, 1, 2, 1, 99);
	assert_true(profile_cached_stack(p, 1, 2, 1, &number));
	assert_int_equal(number, 99);
	profile_destroy(p);
}

static struct profile_sample make_sample(uint32_t stack)
{
	struct profile_sample s = { .process = 1,
		.pid = 10,
		.tid = 11,
		.cpu = 1,
		.fiber_id = 5,
		.stack = stack,
		.comm = "worker",
		.count = 1,
		.weight = 10 };

	return s;
}

static void adds_equal_samples_up(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	struct profile_sample s = make_sample(stack_number(p, 1));

	(void)state;
	/* Bytes after the terminating NUL are not part of the name. */
	assert_int_equal(profile_add(p, &s), 0);
	s.comm[10] = 'x';
	s.count = 2;
	s.weight = 25;
	assert_int_equal(profile_add(p, &s), 0);
	assert_int_equal(profile_sample_count(p), 1);
	assert_int_equal(profile_sample_at(p, 0)->count, 3);
	assert_int_equal(profile_sample_at(p, 0)->weight, 35);
	assert_int_equal(profile_total_count(p), 3);
	assert_null(profile_sample_at(p, 1));
	profile_destroy(p);
}

static void ticks_are_counted_apart(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	struct profile_sample s = make_sample(stack_number(p, 1));

	(void)state;
	s.count = 2;
	assert_int_equal(profile_add(p, &s), 0);
	assert_int_equal(profile_tick_count(p), 2);
	s.type++;
	s.count = 5;
	assert_int_equal(profile_add(p, &s), 0);
	assert_int_equal(profile_add(p, &s), 0);
	assert_int_equal(profile_tick_count(p), 2);
	assert_int_equal(profile_total_count(p), 12);
	assert_int_equal(profile_sample_count(p), 2);
	profile_destroy(p);
}

static bool is_of_even_process(void *context, const struct profile_sample *sample)
{
	++*(unsigned int *)context;
	return sample->process % 2 == 0;
}

/* What stays is still found by its content. */
static void samples_are_removed_by_process(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	struct profile_sample s = make_sample(stack_number(p, 1));
	unsigned int asked = 0;

	(void)state;
	assert_int_equal(profile_keep(p, is_of_even_process, &asked), 0);
	for (s.process = 0; s.process < 1000; s.process++) {
		s.count = 3;
		s.type = s.process % 4 > 1;
		assert_int_equal(profile_add(p, &s), 0);
	}
	assert_int_equal(profile_keep(p, is_of_even_process, &asked), 1500);
	assert_int_equal(asked, 1000);
	assert_int_equal(profile_sample_count(p), 500);
	assert_int_equal(profile_total_count(p), 1500);
	assert_int_equal(profile_tick_count(p), 750);
	for (s.process = 0; s.process < 1000; s.process++) {
		s.type = s.process % 4 > 1;
		assert_int_equal(profile_add(p, &s), 0);
		assert_int_equal(profile_sample_count(p), 500 + (s.process + 1) / 2);
	}
	for (size_t i = 0; i < 500; i++)
		assert_int_equal(profile_sample_at(p, i)->count, 6);
	assert_int_equal(profile_keep(p, is_of_even_process, &asked), 1500);
	assert_int_equal(profile_keep(p, is_of_even_process, &asked), 0);
	profile_destroy(p);
}

static void keeps_samples_apart_that_differ_in_one_field(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	struct profile_sample variants[10];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
		variants[i] = make_sample(stack_number(p, 1));
	variants[1].process++;
	variants[2].pid++;
	variants[3].tid++;
	variants[4].cpu++;
	variants[5].fiber_id++;
	variants[6].stack = stack_number(p, 2);
	variants[7].flags = ABI_SAMPLE_KERNEL;
	variants[8].comm[0] = 'W';
	variants[9].type++;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
			assert_int_equal(profile_add(p, &variants[i]), 0);
	}
	assert_int_equal(profile_sample_count(p), ARRAY_SIZE(variants));
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
		assert_int_equal(profile_sample_at(p, i)->count, 2);
	profile_destroy(p);
}

static void keeps_many_apart_that_differ_in_one_field(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	struct profile_sample s = make_sample(stack_number(p, 1));

	(void)state;
	for (s.cpu = 0; s.cpu < MANY; s.cpu++)
		profile_add(p, &s);
	for (; s.fiber_id < MANY; s.fiber_id++)
		profile_add(p, &s);
	assert_int_equal(profile_sample_count(p), MANY + MANY - 5);
	profile_destroy(p);
}

static void refuses_a_sample_of_an_unknown_stack(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);
	const struct profile_sample s = make_sample(0);

	(void)state;
	assert_int_equal(profile_add(p, &s), -EINVAL);
	assert_int_equal(profile_total_count(p), 0);
	profile_destroy(p);
}

static void grows_through_its_tables(void **state)
{
	struct profile *p = make_profile(LIMIT_BYTES);

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < MANY; i++) {
			struct profile_sample s = make_sample(stack_number(p, i * 10));

			assert_int_equal(s.stack, i);
			assert_int_equal(profile_add(p, &s), 0);
		}
	}
	assert_int_equal(profile_sample_count(p), MANY);
	assert_int_equal(profile_total_count(p), 2 * MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(profile_stack_at(p, i).frames[1].address, i * 10 + 1);
		assert_int_equal(profile_sample_at(p, i)->weight, 20);
	}
	profile_destroy(p);
}

/* A full profile counts known stacks and refuses new ones. */
static void a_full_profile_stays_within_its_limit(void **state)
{
	const size_t limit = 512 * 1024;
	struct profile *p = make_profile(limit);
	struct profile_sample known = make_sample(stack_number(p, 0));
	uint64_t next = 1000, before;
	uint32_t number;

	(void)state;
	assert_int_equal(profile_add(p, &known), 0);
	while (get_stack(p, next, 50, &number) == 0)
		next += 1000;
	assert_int_equal(get_stack(p, next, 50, &number), -E2BIG);
	assert_true(next > 100 * 1000);
	assert_int_equal(put_raw(p, 1, 5, 10), -E2BIG);
	assert_int_equal(stack_number(p, 0), known.stack);
	before = profile_total_count(p);
	assert_int_equal(profile_add(p, &known), 0);
	assert_int_equal(profile_total_count(p), before + 1);
	known.tid++;
	for (number = 0; number < MANY && profile_add(p, &known) == 0; number++)
		known.tid++;
	assert_true(number < MANY);
	/* The last growth may exceed the limit by a chunk. */
	assert_true(profile_bytes(p) < 2 * limit);
	profile_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_raw_stacks_by_window_and_id),
		cmocka_unit_test(a_third_window_takes_the_oldest_ones_place),
		cmocka_unit_test(drops_raw_stacks_before_a_window),
		cmocka_unit_test(refuses_raw_stacks_that_make_no_sense),
		cmocka_unit_test(equal_stacks_have_one_number),
		cmocka_unit_test(stacks_differ_by_each_part),
		cmocka_unit_test(stacks_that_begin_alike_have_numbers_of_their_own),
		cmocka_unit_test(an_empty_stack_is_one_too),
		cmocka_unit_test(finds_cached_stacks_by_the_whole_key),
		cmocka_unit_test(adds_equal_samples_up),
		cmocka_unit_test(ticks_are_counted_apart),
		cmocka_unit_test(samples_are_removed_by_process),
		cmocka_unit_test(keeps_samples_apart_that_differ_in_one_field),
		cmocka_unit_test(keeps_many_apart_that_differ_in_one_field),
		cmocka_unit_test(refuses_a_sample_of_an_unknown_stack),
		cmocka_unit_test(grows_through_its_tables),
		cmocka_unit_test(a_full_profile_stays_within_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
