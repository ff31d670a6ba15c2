/* SPDX-License-Identifier: Apache-2.0 */
/* pprof/ while each allocation fails in turn. */
#include "tests/unit/torture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pprof/pprof.h"

enum { SAMPLES = 300 };

struct fixture {
	struct pprof *pprof;
	struct buffer encoded, reference;
	size_t taken; /* samples added */
};

static const struct pprof_options options = {
	.types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
	.type_count = 2,
	.default_type = "cpu",
	.period_type = { "cpu", "nanoseconds" },
	.period = 52631578,
};

static int add_sample(struct pprof *p, size_t number)
{
	const struct pprof_label labels[] = { { .key = "pid", .number = (int64_t)number },
		{ .key = "comm", .text = "shop" } };
	const struct pprof_mapping m = { 0x1000, 0x9000, 0, number % 2 ? "/odd" : "/even", "abcd" };
	const int64_t values[] = { 1, 10 };
	uint64_t mapping = 0, location = 0;
	char name[32];
	int err = pprof_mapping(p, &m, &mapping);

	snprintf(name, sizeof(name), "function_%zu", number);
	if (!err) {
		const struct pprof_line line = { name, name, "shop.c", 17, 3, 11 };

		err = pprof_location(p, mapping, 0x1000 + number, &line, 1, &location);
	}
	return err ? err : pprof_sample(p, &location, 1, values, labels, 2);
}

static int build_from(struct fixture *f, size_t first)
{
	int err = 0;

	for (size_t i = first; i < SAMPLES && !err; i++) {
		err = add_sample(f->pprof, i);
		f->taken += !err;
	}
	return err ? err : pprof_comment(f->pprof, "a comment");
}

static int create_and_fill(void *context)
{
	struct fixture *f = context;
	int err = pprof_create(&options, &f->pprof);

	if (err)
		assert_null(f->pprof);
	return err ? err : build_from(f, 0);
}

static void begin(void *context)
{
	struct fixture *f = context;

	f->pprof = NULL;
	f->taken = 0;
	buffer_init(&f->encoded, 1 << 20);
}

/* Failed calls are repeated, and the profile is the same as without failures. */
static void the_profile_goes_on(void *context, int result)
{
	struct fixture *f = context;

	(void)result;
	if (f->pprof) {
		assert_int_equal(pprof_sample_count(f->pprof), f->taken);
		assert_int_equal(build_from(f, f->taken), 0);
		assert_int_equal(pprof_sample_count(f->pprof), SAMPLES);
		assert_int_equal(pprof_encode(f->pprof, true, &f->encoded), 0);
	}
	pprof_destroy(f->pprof);
	buffer_deinit(&f->encoded);
}

static void a_call_that_failed_can_be_made_again(void **state)
{
	struct fixture f = { 0 };
	struct torture t = { .begin = begin,
		.operation = create_and_fill,
		.end = the_profile_goes_on,
		.context = &f };

	(void)state;
	torture_run(&t);
}

static void begin_filled(void *context)
{
	begin(context);
	assert_int_equal(create_and_fill(context), 0);
}

static int encode(void *context)
{
	struct fixture *f = context;

	return pprof_encode(f->pprof, true, &f->encoded);
}

/* After a failed encoding, the next one gives the same bytes. */
static void it_encodes_the_same(void *context, int result)
{
	struct fixture *f = context;

	if (result) {
		buffer_deinit(&f->encoded);
		buffer_init(&f->encoded, 1 << 20);
		assert_int_equal(encode(f), 0);
	}
	assert_int_equal(f->encoded.size, f->reference.size);
	assert_memory_equal(f->encoded.bytes, f->reference.bytes, f->reference.size);
	pprof_destroy(f->pprof);
	buffer_deinit(&f->encoded);
}

static void an_encoding_that_failed_changes_nothing(void **state)
{
	struct fixture f = { 0 };
	struct torture t = { .begin = begin_filled,
		.operation = encode,
		.end = it_encodes_the_same,
		.context = &f };

	(void)state;
	begin_filled(&f);
	buffer_init(&f.reference, 1 << 20);
	assert_int_equal(pprof_encode(f.pprof, true, &f.reference), 0);
	pprof_destroy(f.pprof);
	buffer_deinit(&f.encoded);
	torture_run(&t);
	buffer_deinit(&f.reference);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(a_call_that_failed_can_be_made_again),
		torture_test(an_encoding_that_failed_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
