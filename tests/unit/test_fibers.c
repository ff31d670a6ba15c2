/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about fibers in a profile: labels as users see them, and what is refused. */
#include <errno.h>
#include <stdio.h>

#include "agent/sampler/profile/sample_labels.h"
#include "tests/unit/fiber_record.h"

enum { WINDOW = 1, LIMIT_BYTES = 1 << 20 };

struct fixture {
	struct profile *profile;
	union fiber_record record;
	uint64_t id;
};

static int create(void **state)
{
	static struct fixture f;

	f = (struct fixture){ 0 };
	*state = &f;
	fiber_record_begin(&f.record, WINDOW, ++f.id);
	return profile_create(LIMIT_BYTES, &f.profile);
}

static int destroy(void **state)
{
	struct fixture *f = *state;

	profile_destroy(f->profile);
	return 0;
}

/* A new record; the one before stays in the profile. */
static void next(struct fixture *f)
{
	fiber_record_begin(&f->record, WINDOW, ++f->id);
}

static uint32_t number_of(struct fixture *f, uint32_t losses)
{
	uint32_t number = 99, lost = 99;

	assert_int_equal(profile_fiber(f->profile, &f->record.facts, &number, &lost), 0);
	assert_int_equal(lost, losses);
	/* The same from memory. */
	assert_int_equal(profile_fiber(f->profile, &f->record.facts, &number, &lost), 0);
	assert_int_equal(lost, losses);
	return number;
}

/* "key=value key=value" */
static const char *text_of(const struct fixture *f, uint32_t number)
{
	static char text[4096];
	const struct profile_fiber fiber = profile_fiber_at(f->profile, number);
	struct profile_fiber_label label;
	const char *at = NULL;
	size_t used = 0;

	text[0] = '\0';
	while (profile_fiber_next(&fiber, &at, &label))
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%s",
			used ? " " : "", label.key, label.value);
	return text;
}

static void has(struct fixture *f, const char *text, uint32_t losses)
{
	assert_string_equal(text_of(f, number_of(f, losses)), text);
}

/* ---- labels --------------------------------------------------------------------------------- */

static void labels_are_kept(void **state)
{
	struct fixture *f = *state;

	fiber_record_add(&f->record, "handler", "/index");
	fiber_record_add(&f->record, "tenant", "");
	has(f, "handler=/index tenant=", 0);
}

/* Go's maps have no order. */
static void the_order_of_the_record_does_not_count(void **state)
{
	struct fixture *f = *state;
	uint32_t first;

	fiber_record_add(&f->record, "a", "1");
	fiber_record_add(&f->record, "c", "3");
	fiber_record_add(&f->record, "b", "2");
	has(f, "a=1 b=2 c=3", 0);
	first = number_of(f, 0);
	next(f);
	fiber_record_add(&f->record, "b", "2");
	fiber_record_add(&f->record, "c", "3");
	fiber_record_add(&f->record, "a", "1");
	assert_int_equal(number_of(f, 0), first);
	next(f);
	fiber_record_add(&f->record, "b", "3");
	assert_int_not_equal(number_of(f, 0), first);
}

static void of_equal_keys_the_first_is_kept(void **state)
{
	struct fixture *f = *state;

	fiber_record_add(&f->record, "a", "1");
	fiber_record_add(&f->record, "a", "2");
	has(f, "a=1", 0);
}

static void no_label_of_ours_is_overwritten(void **state)
{
	static const char *const ours[] = { "pid", "tid", "cpu", "goid", "comm", "thread_comm",
		"container_id" };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		next(f);
		fiber_record_add(&f->record, ours[i], "liar");
		fiber_record_add(&f->record, "a", "1");
		has(f, "a=1", PROFILE_FIBER_RESERVED);
	}
	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		next(f);
		fiber_record_add(&f->record, sample_labels[i].name, "liar");
		assert_int_equal(number_of(f, PROFILE_FIBER_RESERVED), 0);
	}
}

static void text_becomes_utf8(void **state)
{
	struct fixture *f = *state;

	fiber_record_add_bytes(&f->record, "k\xffy", 3, "a\0\n\xc3\xa9", 5);
	has(f, "k?y=a??\xc3\xa9", 0);
}

static void cut_values_show_it_and_have_whole_letters(void **state)
{
	struct fixture *f = *state;
	char value[ABI_FIBER_VALUE_BYTES], expected[ABI_FIBER_VALUE_BYTES + 8];

	memset(value, 'v', sizeof(value));
	fiber_record_add_bytes(&f->record, "k", 1, value, sizeof(value));
	f->record.facts.labels[1] = ABI_FIBER_VALUE_CUT;
	f->record.facts.flags |= ABI_FIBER_CUT;
	snprintf(expected, sizeof(expected), "k=%.128s\xe2\x80\xa6", value);
	has(f, expected, PROFILE_FIBER_CUT);
	next(f);
	memcpy(value + sizeof(value) - 2, "\xe2\x82", 2);
	fiber_record_add_bytes(&f->record, "k", 1, value, sizeof(value));
	f->record.facts.labels[1] = ABI_FIBER_VALUE_CUT;
	f->record.facts.flags |= ABI_FIBER_CUT;
	snprintf(expected, sizeof(expected), "k=%.126s\xe2\x80\xa6", value);
	has(f, expected, PROFILE_FIBER_CUT);
}

static void what_a_fiber_is_is_kept(void **state)
{
	struct fixture *f = *state;
	struct profile_fiber fiber;

	f->record.facts.parent_id = 1;
	f->record.facts.flags |= ABI_FIBER_ON_THREAD_STACK << ABI_FIBER_STATE_SHIFT;
	f->record.facts.flags |= 0xfedcU << ABI_FIBER_WAIT_SHIFT;
	fiber = profile_fiber_at(f->profile, number_of(f, 0));
	assert_int_equal(fiber.parent_id, 1);
	assert_int_equal(fiber.state, ABI_FIBER_ON_THREAD_STACK);
	assert_int_equal(fiber.wait, 0xfedc);
	assert_int_equal(fiber.label_count, 0);
	assert_string_equal(text_of(f, 1), "");
}

static void a_state_that_nobody_knows_is_none(void **state)
{
	struct fixture *f = *state;
	struct profile_fiber fiber;

	f->record.facts.parent_id = 1;
	f->record.facts.flags |= ABI_FIBER_STATES << ABI_FIBER_STATE_SHIFT;
	fiber = profile_fiber_at(f->profile, number_of(f, 0));
	assert_int_equal(fiber.state, ABI_FIBER_STATE_UNKNOWN);
}

static void a_sample_moves_to_another_profile_with_all_that_it_has(void **state)
{
	struct fixture *f = *state;
	const struct profile_frame frames[] = { { .address = 1, .module = 3 },
		{ .address = 2, .module = 3 } };
	struct profile_sample sample = { .count = 1 };
	struct profile *other;
	uint32_t number;

	assert_int_equal(profile_create(LIMIT_BYTES, &other), 0);
	number_of(f, 0);
	next(f);
	fiber_record_add(&f->record, "handler", "/index");
	sample.fiber = number_of(f, 0);
	for (size_t i = 0; i < 2; i++) {
		const struct profile_stack stack = { .frames = &frames[i], .frame_count = 1 };

		assert_int_equal(profile_stack(f->profile, &stack, &number), 0);
	}
	sample.origin = number + 1;
	assert_int_equal(profile_adopt(other, f->profile, &sample), 0);
	assert_int_equal(profile_stack_at(other, sample.stack).frames->address, 1);
	assert_int_equal(profile_stack_at(other, sample.origin - 1).frames->address, 2);
	assert_int_equal(profile_fiber_at(other, sample.fiber).label_count, 1);
	assert_int_equal(profile_add(other, &sample), 0);
	/* A profile that is full leaves the sample as it was. */
	number = sample.fiber;
	profile_destroy(other);
	assert_int_equal(profile_create(1, &other), 0);
	assert_int_equal(profile_adopt(other, f->profile, &sample), -E2BIG);
	assert_int_equal(sample.fiber, number);
	profile_destroy(other);
}

/* ---- what is not there ---------------------------------------------------------------------- */

static void facts_that_say_nothing_have_no_number(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(number_of(f, 0), 0);
	next(f);
	f->record.facts.flags |= ABI_FIBER_UNREADABLE;
	assert_int_equal(number_of(f, PROFILE_FIBER_UNREADABLE), 0);
	assert_int_equal(profile_fiber_at(f->profile, 0).label_count, 0);
	assert_int_equal(profile_fiber_at(f->profile, 7).label_count, 0);
}

/* Whoever wrote it: lengths that lead out of the record. */
static void a_record_that_makes_no_sense_loses_the_rest(void **state)
{
	struct fixture *f = *state;
	static const struct {
		uint8_t key, value;
	} heads[] = { { 0, 1 }, { 65, 1 }, { 1, 129 }, { 1, 254 }, { 1, 255 }, { 255, 255 } };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		next(f);
		fiber_record_add(&f->record, "a", "1");
		fiber_record_add(&f->record, "b", "2");
		f->record.facts.labels[4] = heads[i].key;
		f->record.facts.labels[5] = heads[i].value;
		has(f, "a=1", PROFILE_FIBER_UNREADABLE);
	}
	next(f);
	fiber_record_add(&f->record, "a", "1");
	f->record.facts.label_count = UINT32_MAX;
	f->record.facts.label_bytes = UINT32_MAX;
	has(f, "a=1", PROFILE_FIBER_UNREADABLE);
	next(f);
	f->record.facts.word_count = 0;
	f->record.facts.label_count = 1;
	assert_int_equal(
		profile_fiber(f->profile, &f->record.facts, &(uint32_t){ 0 }, &(uint32_t){ 0 }),
		-EINVAL);
}

static void a_full_profile_refuses_facts(void **state)
{
	struct fixture *f = *state;
	uint32_t number, losses;
	char value[64];
	int err = 0;

	for (uint32_t i = 0; i < 100000 && !err; i++) {
		next(f);
		snprintf(value, sizeof(value), "%060u", i);
		fiber_record_add(&f->record, "span_id", value);
		err = profile_fiber(f->profile, &f->record.facts, &number, &losses);
	}
	assert_int_equal(err, -E2BIG);
	assert_in_range(profile_bytes(f->profile), LIMIT_BYTES / 2, LIMIT_BYTES * 2);
	/* What it knows it still finds. */
	f->record.facts.id = 2;
	(void)profile_fiber(f->profile, &f->record.facts, &number, &losses);
	assert_int_equal(number, 1);
}

/* ---- records and samples -------------------------------------------------------------------- */

static void facts_are_not_taken_for_a_stack(void **state)
{
	struct fixture *f = *state;

	fiber_record_add(&f->record, "a", "1");
	put_raw_facts(f->profile, &f->record);
	assert_null(profile_get_raw(f->profile, WINDOW, f->id));
	assert_non_null(profile_get_raw_facts(f->profile, WINDOW, f->id));
	f->record.facts.kind = ABI_STACK;
	f->record.facts.id = 77;
	put_raw_facts(f->profile, &f->record);
	assert_non_null(profile_get_raw(f->profile, WINDOW, 77));
	assert_null(profile_get_raw_facts(f->profile, WINDOW, 77));
	assert_null(profile_get_raw_facts(f->profile, WINDOW, 78));
}

static void samples_differ_by_their_fibers_facts(void **state)
{
	struct fixture *f = *state;
	struct profile_sample sample = { .count = 1 };

	fiber_record_add(&f->record, "a", "1");
	assert_int_equal(profile_stack(f->profile, &(struct profile_stack){ 0 }, &sample.stack), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
	sample.fiber = number_of(f, 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
	assert_int_equal(profile_add(f->profile, &sample), 0);
	assert_int_equal(profile_sample_count(f->profile), 2);
	sample.fiber++;
	assert_int_equal(profile_add(f->profile, &sample), -EINVAL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, create, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(labels_are_kept),
		CASE(the_order_of_the_record_does_not_count),
		CASE(of_equal_keys_the_first_is_kept),
		CASE(no_label_of_ours_is_overwritten),
		CASE(text_becomes_utf8),
		CASE(cut_values_show_it_and_have_whole_letters),
		CASE(what_a_fiber_is_is_kept),
		CASE(a_state_that_nobody_knows_is_none),
		CASE(a_sample_moves_to_another_profile_with_all_that_it_has),
		CASE(facts_that_say_nothing_have_no_number),
		CASE(a_record_that_makes_no_sense_loses_the_rest),
		CASE(a_full_profile_refuses_facts),
		CASE(facts_are_not_taken_for_a_stack),
		CASE(samples_differ_by_their_fibers_facts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
