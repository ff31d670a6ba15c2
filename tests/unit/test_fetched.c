/* SPDX-License-Identifier: Apache-2.0 */
/* agent/trace_arguments/fetched: values as text and as JSON, and what can be wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/trace_arguments/fetched.h"
#include "base/cleanup.h"

struct fixture {
	struct argument_builder builder;
	struct abi_fetched fetched;
};

static int fixture_begin(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	argument_builder_init(&f->builder, ARGUMENT_PLAN_GO);
	*state = f;
	return 0;
}

static int fixture_end(void **state)
{
	free(*state);
	return 0;
}

/* ---- arguments and their bytes -------------------------------------------------------------- */

/* A fetch with SIZE bytes of room that has brought these. */
static uint8_t fetched(struct fixture *f, const void *bytes, size_t count, uint32_t size,
	enum abi_fetch_status status)
{
	const struct abi_fetch fetch = { .size = size, .step_count = 1 };
	uint8_t number = argument_builder_fetch(&f->builder, &fetch);

	assert_int_not_equal(number, ARGUMENT_NO_FETCH);
	f->fetched.status[number] = (uint8_t)status;
	if (count)
		memcpy(f->fetched.bytes + f->builder.fetches[number].at, bytes, count);
	return number;
}

static uint8_t word(struct fixture *f, uint64_t value)
{
	return fetched(f, &value, sizeof(value), sizeof(value), ABI_FETCHED_OK);
}

static uint8_t nothing(struct fixture *f)
{
	return fetched(f, NULL, 0, 8, ABI_FETCHED_UNREADABLE);
}

static struct argument *add(struct fixture *f, const char *name, enum argument_kind kind,
	uint16_t size, uint8_t first, uint8_t second)
{
	struct argument *a = argument_builder_add(&f->builder, 0);

	assert_non_null(a);
	a->name = argument_builder_name(&f->builder, name, strlen(name));
	a->kind = (uint8_t)kind;
	a->size = size;
	a->first = first;
	a->second = second;
	return a;
}

static void expect(struct fixture *f, const char *text, const char *json)
{
	autofree struct argument_plan *plan = argument_builder_finish(&f->builder);
	autocall(buffer_deinit) struct buffer out;
	struct json j;

	assert_non_null(plan);
	assert_true(argument_plan_check(plan, argument_plan_size(plan)));
	buffer_init(&out, 1 << 16);
	assert_int_equal(fetched_text(plan, &f->fetched, &out), 0);
	buffer_append(&out, "", 1);
	assert_string_equal((const char *)out.bytes, text);
	out.size = 0;
	json_init(&j, &out, JSON_COMPACT);
	fetched_json(plan, &f->fetched, &j, NULL);
	assert_int_equal(json_finish(&j), 0);
	buffer_append(&out, "", 1);
	if (json)
		assert_string_equal((const char *)out.bytes, json);
}

/* ---- cases ---------------------------------------------------------------------------------- */

static void numbers_have_their_sign_and_width(void **state)
{
	struct fixture *f = *state;
	float half = 0.5f;
	double tenth = 0.1;

	add(f, "a", ARGUMENT_SIGNED, 1, word(f, 0xffffffffffffff80), ARGUMENT_NO_FETCH);
	add(f, "b", ARGUMENT_SIGNED, 8, word(f, (uint64_t)-5), ARGUMENT_NO_FETCH);
	add(f, "c", ARGUMENT_UNSIGNED, 2, word(f, 0x1ffff), ARGUMENT_NO_FETCH);
	add(f, "d", ARGUMENT_UNSIGNED, 8, word(f, UINT64_MAX), ARGUMENT_NO_FETCH);
	add(f, "e", ARGUMENT_FLOAT, 4, fetched(f, &half, 4, 4, ABI_FETCHED_OK), ARGUMENT_NO_FETCH);
	add(f, "f", ARGUMENT_FLOAT, 8, fetched(f, &tenth, 8, 8, ABI_FETCHED_OK), ARGUMENT_NO_FETCH);
	add(f, "g", ARGUMENT_BOOL, 1, word(f, 0xff00), ARGUMENT_NO_FETCH);
	add(f, "h", ARGUMENT_BOOL, 1, word(f, 1), ARGUMENT_NO_FETCH);
	expect(f, "a=-128, b=-5, c=65535, d=18446744073709551615, e=0.5, f=0.1, g=false, h=true",
		"[{\"name\":\"a\",\"value\":-128},{\"name\":\"b\",\"value\":-5},"
		"{\"name\":\"c\",\"value\":65535},{\"name\":\"d\",\"value\":18446744073709551615},"
		"{\"name\":\"e\",\"value\":0.5},{\"name\":\"f\",\"value\":0.1},"
		"{\"name\":\"g\",\"value\":false},{\"name\":\"h\",\"value\":true}]");
}

static struct argument *add_enum(struct fixture *f, const char *name, uint64_t value)
{
	static const char enumerators[] = "1=RED,fffffffc=GREEN,";
	struct argument *a = add(f, name, ARGUMENT_ENUM, 4, word(f, value), ARGUMENT_NO_FETCH);

	a->enumerators = argument_builder_name(&f->builder, enumerators, strlen(enumerators));
	return a;
}

static void values_of_enumerations_have_names(void **state)
{
	struct fixture *f = *state;

	add_enum(f, "a", (uint32_t)-4);
	add_enum(f, "b", 1);
	add_enum(f, "c", (uint32_t)-5)->is_signed = 1;
	add_enum(f, "d", (uint32_t)-5);
	expect(f, "a=GREEN, b=RED, c=-5, d=4294967291",
		"[{\"name\":\"a\",\"value\":4294967292,\"enumerator\":\"GREEN\"},"
		"{\"name\":\"b\",\"value\":1,\"enumerator\":\"RED\"},"
		"{\"name\":\"c\",\"value\":-5},{\"name\":\"d\",\"value\":4294967291}]");
}

static void characters_are_quoted(void **state)
{
	static const struct {
		uint16_t size;
		uint64_t value;
	} cases[] = { { 1, 'x' }, { 1, '\'' }, { 1, '\n' }, { 1, 0xff }, { 4, 0x1f600 } };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		add(f, "", ARGUMENT_CHARACTER, cases[i].size, word(f, cases[i].value),
			ARGUMENT_NO_FETCH);
	expect(f, "'x', '\\'', '\\n', '\\xff', '\\u{1f600}'", NULL);
}

static void bits_are_cut_out(void **state)
{
	const uint8_t bytes[8] = { 0xed, 0x01 };
	struct fixture *f = *state;
	uint8_t number = fetched(f, bytes, sizeof(bytes), 8, ABI_FETCHED_OK);
	struct argument *a = add(f, "a", ARGUMENT_UNSIGNED, 1, number, ARGUMENT_NO_FETCH);
	struct argument *b = add(f, "b", ARGUMENT_SIGNED, 1, number, ARGUMENT_NO_FETCH);

	a->bit_size = 3;
	b->bit_off = 3;
	b->bit_size = 5;
	expect(f, "a=5, b=-3", NULL);
}

static void arrays_say_how_many_elements_there_are(void **state)
{
	const int16_t numbers[] = { 1, -2 };
	struct fixture *f = *state;
	uint8_t fetch = fetched(f, numbers, sizeof(numbers), 8, ABI_FETCHED_OK);

	add(f, "a", ARGUMENT_ARRAY, 2, ARGUMENT_NO_FETCH, ARGUMENT_NO_FETCH);
	for (uint8_t i = 0; i < 2; i++) {
		struct argument *item = add(f, "", ARGUMENT_SIGNED, 2, fetch, ARGUMENT_NO_FETCH);

		item->depth = 1;
		item->skip = (uint8_t)(i * sizeof(numbers[0]));
	}
	add(f, "b", ARGUMENT_ARRAY, 20000, ARGUMENT_NO_FETCH, ARGUMENT_NO_FETCH);
	add(f, "", ARGUMENT_SIGNED, 2, fetch, ARGUMENT_NO_FETCH)->depth = 1;
	add(f, "c", ARGUMENT_SLICE, 0, word(f, 3), ARGUMENT_NO_FETCH);
	expect(f, "a=[1, -2], b=[1, ...(20000)], c=[len 3]",
		"[{\"name\":\"a\",\"length\":2,\"members\":[{\"name\":\"\",\"value\":1},"
		"{\"name\":\"\",\"value\":-2}]},{\"name\":\"b\",\"length\":20000,\"members\":"
		"[{\"name\":\"\",\"value\":1}]},{\"name\":\"c\",\"length\":3}]");
}

static void infinite_numbers_have_names(void **state)
{
	struct fixture *f = *state;

	add(f, "a", ARGUMENT_FLOAT, 8, word(f, UINT64_C(0x7ff0000000000000)), ARGUMENT_NO_FETCH);
	add(f, "b", ARGUMENT_FLOAT, 8, word(f, UINT64_C(0xfff0000000000000)), ARGUMENT_NO_FETCH);
	add(f, "c", ARGUMENT_FLOAT, 8, word(f, UINT64_C(0x7ff8000000000000)), ARGUMENT_NO_FETCH);
	expect(f, "a=+Inf, b=-Inf, c=NaN",
		"[{\"name\":\"a\",\"value\":\"+Inf\"},{\"name\":\"b\",\"value\":\"-Inf\"},"
		"{\"name\":\"c\",\"value\":\"NaN\"}]");
}

static void what_is_not_there_is_a_question_mark(void **state)
{
	struct fixture *f = *state;

	add(f, "a", ARGUMENT_SIGNED, 8, nothing(f), ARGUMENT_NO_FETCH);
	add(f, "b", ARGUMENT_SIGNED, 8, ARGUMENT_NO_FETCH, ARGUMENT_NO_FETCH);
	add(f, "c", ARGUMENT_UNKNOWN, 0, ARGUMENT_NO_FETCH, ARGUMENT_NO_FETCH);
	add(f, "d", ARGUMENT_STRING, 0, word(f, 0), nothing(f));
	add(f, "e", ARGUMENT_SLICE, 0, word(f, 1), nothing(f));
	add(f, "f", ARGUMENT_INTERFACE, 0, word(f, 1), nothing(f));
	add(f, "g", ARGUMENT_MAP, 0, word(f, 1), nothing(f));
	add(f, "h", ARGUMENT_STRUCT_POINTER, 0, nothing(f), ARGUMENT_NO_FETCH);
	add(f, "x", ARGUMENT_SIGNED, 8, word(f, 7), ARGUMENT_NO_FETCH)->depth = 1;
	expect(f, "a=?, b=?, c=?, d=?, e=?, f=?, g=?, h=?", NULL);
}

static void lengths_that_cannot_be_are_question_marks(void **state)
{
	struct fixture *f = *state;

	add(f, "a", ARGUMENT_STRING, 0, fetched(f, "abc", 3, 8, ABI_FETCHED_CUT),
		word(f, UINT64_MAX));
	add(f, "b", ARGUMENT_SLICE, 0, word(f, 3), word(f, 2));
	add(f, "c", ARGUMENT_SLICE, 0, word(f, 3), word(f, UINT64_MAX));
	add(f, "d", ARGUMENT_MAP, 0, word(f, 1), word(f, UINT64_MAX));
	expect(f, "a=?, b=?, c=?, d=?",
		"[{\"name\":\"a\",\"unknown\":true},{\"name\":\"b\",\"unknown\":true},"
		"{\"name\":\"c\",\"unknown\":true},{\"name\":\"d\",\"unknown\":true}]");
}

static void texts_end_where_they_end(void **state)
{
	struct fixture *f = *state;

	add(f, "a", ARGUMENT_STRING, 0, fetched(f, "abcdefg", 8, 8, ABI_FETCHED_OK), word(f, 3));
	add(f, "b", ARGUMENT_STRING, 0, fetched(f, "abcdefgh", 8, 8, ABI_FETCHED_CUT),
		word(f, 300));
	add(f, "c", ARGUMENT_STRING, 0, fetched(f, "", 0, 8, ABI_FETCHED_OK), word(f, 0));
	add(f, "d", ARGUMENT_C_STRING, 0, fetched(f, "abc\0efg", 8, 8, ABI_FETCHED_OK), word(f, 1));
	add(f, "e", ARGUMENT_C_STRING, 0, fetched(f, "abcdefg", 8, 8, ABI_FETCHED_CUT), word(f, 1));
	add(f, "f", ARGUMENT_C_STRING, 0, nothing(f), word(f, 0));
	add(f, "g", ARGUMENT_BYTES, 8, fetched(f, "a\0b\0\0\0\0", 8, 8, ABI_FETCHED_OK),
		ARGUMENT_NO_FETCH);
	expect(f,
		"a=\"abc\", b=\"abcdefgh\"...(300 bytes), c=\"\", d=\"abc\", e=\"abcdefg\"..., "
		"f=nil, "
		"g=\"a\\x00b\"",
		"[{\"name\":\"a\",\"value\":\"abc\",\"length\":3},"
		"{\"name\":\"b\",\"value\":\"abcdefgh\",\"cut\":true,\"length\":300},"
		"{\"name\":\"c\",\"value\":\"\",\"length\":0},{\"name\":\"d\",\"value\":\"abc\"},"
		"{\"name\":\"e\",\"value\":\"abcdefg\",\"cut\":true},{\"name\":\"f\",\"value\":"
		"null},"
		"{\"name\":\"g\",\"value\":\"a\\u0000b\"}]");
}

/* Escape sequences for terminals, quotes, and what is not UTF-8; C2 9B is a CSI. */
/* A std::string of libc++ with VALUE in its 24 bytes, and the 5 bytes to which it may point. */
static void add_libcxx_string(struct fixture *f, const char *name, const void *value,
	size_t value_bytes, enum abi_fetch_status status)
{
	uint8_t first = fetched(f, value, value_bytes, LIBCXX_STRING_BYTES, ABI_FETCHED_OK);

	add(f, name, ARGUMENT_LIBCXX_STRING, 0, first, fetched(f, "there", 5, 8, status));
}

static void strings_of_libcxx_have_two_forms(void **state)
{
	const struct {
		uint64_t capacity, size, address;
	} here = { 33, 5, 0x1000 }, there = { 33, 40, 0x1000 }, broken = { 1, UINT64_MAX, 0x1000 };
	struct fixture *f = *state;

	add_libcxx_string(f, "a",
		"\x08"
		"here",
		5, ABI_FETCHED_UNREADABLE);
	add_libcxx_string(f, "b", "\0", 2, ABI_FETCHED_OK);
	add_libcxx_string(f, "c", &here, sizeof(here), ABI_FETCHED_OK);
	add_libcxx_string(f, "d", &here, sizeof(here), ABI_FETCHED_UNREADABLE);
	add_libcxx_string(f, "e", &there, sizeof(there), ABI_FETCHED_OK);
	add_libcxx_string(f, "f", &broken, sizeof(broken), ABI_FETCHED_CUT);
	add_libcxx_string(f, "g", "\x2e more than fits in", 20, ABI_FETCHED_OK);
	expect(f, "a=\"here\", b=\"\", c=\"there\", d=?, e=?, f=?, g=?", NULL);
}

static void bytes_that_disturb_are_escaped(void **state)
{
	static const char bytes[] = "\"\\\n\t\r\x1b[31m\x7f\xff\xc3\xa9\xc2\x9b";
	struct fixture *f = *state;

	add(f, "a", ARGUMENT_BYTES, sizeof(bytes) - 1,
		fetched(f, bytes, sizeof(bytes) - 1, sizeof(bytes) - 1, ABI_FETCHED_OK),
		ARGUMENT_NO_FETCH);
	expect(f, "a=\"\\\"\\\\\\n\\t\\r\\x1b[31m\\x7f\\xff\xc3\xa9\\xc2\\x9b\"", NULL);
}

static void collections_have_lengths(void **state)
{
	struct fixture *f = *state;

	add(f, "a", ARGUMENT_SLICE, 0, word(f, 2), word(f, 4));
	add(f, "b", ARGUMENT_MAP, 0, word(f, 0xc000), word(f, 9));
	add(f, "c", ARGUMENT_MAP, 0, word(f, 0), nothing(f));
	expect(f, "a=[len 2, cap 4], b=map[len 9], c=nil",
		"[{\"name\":\"a\",\"length\":2,\"capacity\":4},{\"name\":\"b\",\"length\":9},"
		"{\"name\":\"c\",\"value\":null}]");
}

static void structs_have_members_unless_they_are_null(void **state)
{
	struct fixture *f = *state;

	add(f, "p", ARGUMENT_STRUCT_POINTER, 0, word(f, 0xc000), ARGUMENT_NO_FETCH);
	add(f, "x", ARGUMENT_SIGNED, 8, word(f, 1), ARGUMENT_NO_FETCH)->depth = 1;
	add(f, "in", ARGUMENT_STRUCT, 0, ARGUMENT_NO_FETCH, ARGUMENT_NO_FETCH)->depth = 1;
	add(f, "y", ARGUMENT_SIGNED, 8, nothing(f), ARGUMENT_NO_FETCH)->depth = 2;
	add(f, "q", ARGUMENT_STRUCT_POINTER, 0, word(f, 0), ARGUMENT_NO_FETCH);
	add(f, "x", ARGUMENT_SIGNED, 8, word(f, 2), ARGUMENT_NO_FETCH)->depth = 1;
	add(f, "r", ARGUMENT_POINTER, 0, word(f, 0x10), ARGUMENT_NO_FETCH);
	expect(f, "p=&{x=1, in={y=?}}, q=nil, r=0x10",
		"[{\"name\":\"p\",\"value\":\"0xc000\",\"members\":[{\"name\":\"x\",\"value\":1},"
		"{\"name\":\"in\",\"members\":[{\"name\":\"y\",\"unknown\":true}]}]},"
		"{\"name\":\"q\",\"value\":null},{\"name\":\"r\",\"value\":\"0x10\"}]");
}

static void interfaces_have_the_name_of_their_type(void **state)
{
	/* flags of the type, then of the name, length, name */
	static const char star[] = "\2\1\x13**errors.errorString", plain[] = "\0\1\3int";
	struct fixture *f = *state;

	add(f, "a", ARGUMENT_INTERFACE, 0, word(f, 1),
		fetched(f, star, sizeof(star), 32, ABI_FETCHED_OK));
	add(f, "b", ARGUMENT_INTERFACE, 0, word(f, 1),
		fetched(f, plain, sizeof(plain), 32, ABI_FETCHED_OK));
	add(f, "c", ARGUMENT_INTERFACE, 0, word(f, 0), nothing(f));
	add(f, "d", ARGUMENT_INTERFACE, 0, word(f, 1), fetched(f, star, 8, 8, ABI_FETCHED_OK));
	expect(f, "a=<*errors.errorStrin>, b=<int>, c=nil, d=<*err...>",
		"[{\"name\":\"a\",\"dynamic_type\":\"*errors.errorStrin\"},"
		"{\"name\":\"b\",\"dynamic_type\":\"int\"},{\"name\":\"c\",\"value\":null},"
		"{\"name\":\"d\",\"dynamic_type\":\"*err\",\"cut\":true}]");
}

static void old_names_of_types_have_lengths_of_two_bytes(void **state)
{
	static const char star[] = "\2\1\0\4*int";
	struct fixture *f = *state;

	f->builder.flags |= ARGUMENT_PLAN_OLD_GO_NAMES;
	add(f, "a", ARGUMENT_INTERFACE, 0, word(f, 1),
		fetched(f, star, sizeof(star), 32, ABI_FETCHED_OK));
	expect(f, "a=<int>", NULL);
}

static void long_names_of_types_have_lengths_of_two_digits(void **state)
{
	char name[200] = "\0\1\x90\1"; /* 0x90: 16, and 1 * 128 follows */
	struct fixture *f = *state;

	memset(name + 4, 'x', 144);
	add(f, "a", ARGUMENT_INTERFACE, 0, word(f, 1), fetched(f, name, 148, 200, ABI_FETCHED_OK));
	memmove(name, "a=<", 3);
	memset(name + 3, 'x', 144);
	memcpy(name + 147, ">", 2);
	expect(f, name, NULL);
}

static void values_without_names_stand_alone(void **state)
{
	struct fixture *f = *state;

	add(f, "", ARGUMENT_SIGNED, 8, word(f, 3), ARGUMENT_NO_FETCH);
	add(f, "err", ARGUMENT_INTERFACE, 0, word(f, 0), ARGUMENT_NO_FETCH);
	expect(f, "3, err=nil", NULL);
}

static void no_plan_has_no_arguments(void **)
{
	autocall(buffer_deinit) struct buffer out;
	struct json j;

	buffer_init(&out, 100);
	assert_int_equal(fetched_text(NULL, NULL, &out), 0);
	assert_int_equal(out.size, 0);
	json_init(&j, &out, JSON_COMPACT);
	fetched_json(NULL, NULL, &j, NULL);
	assert_int_equal(json_finish(&j), 0);
	assert_int_equal(out.size, 2);
}

/* ---- plans of others ------------------------------------------------------------------------ */

/* Each number of a plan beyond its bounds is found. */
static void plan_with_a_number_out_of_bounds_is_refused(void **state)
{
	struct fixture *f = *state;
	autofree struct argument_plan *plan = NULL;
	struct abi_fetch *fetch;
	struct argument *item;
	size_t size;

	add(f, "abc", ARGUMENT_STRING, 0, word(f, 1), word(f, 2));
	plan = argument_builder_finish(&f->builder);
	assert_non_null(plan);
	size = argument_plan_size(plan);
	fetch = (struct abi_fetch *)argument_plan_fetches(plan);
	item = (struct argument *)argument_plan_items(plan);
#define REFUSED(place, value)                                  \
	do {                                                   \
		__typeof__(place) before_ = (place);           \
		(place) = (value);                             \
		assert_false(argument_plan_check(plan, size)); \
		(place) = before_;                             \
		assert_true(argument_plan_check(plan, size));  \
	} while (0)
	REFUSED(plan->magic, 1);
	REFUSED(plan->fetch_count, 1);
	REFUSED(plan->count, ARGUMENTS_MAX + 1);
	REFUSED(plan->names_bytes, 4);
	REFUSED(plan->fetched_bytes, 8);
	REFUSED(plan->fetched_bytes, ABI_FETCHED_BYTES + 8);
	REFUSED(fetch[1].kind, 9);
	REFUSED(fetch[1].origin, ABI_FETCH_REGISTERS);
	REFUSED(fetch[1].step_count, 9);
	REFUSED(fetch[1].size, 0);
	REFUSED(fetch[1].size, 9);
	REFUSED(fetch[1].at, 4);
	REFUSED(fetch[1].at, 16);
	REFUSED(fetch[1].kind, ABI_FETCH_ARRAY); /* of elements of 0 bytes */
	REFUSED(item->kind, ARGUMENT_KINDS);
	REFUSED(item->depth, ARGUMENT_MAX_DEPTH + 1);
	REFUSED(item->first, 2);
	REFUSED(item->second, 2);
	REFUSED(item->name, 5);
	REFUSED(item->type, 5);
	REFUSED(*(char *)argument_plan_name(plan, 1), '\n');
	REFUSED(*(char *)argument_plan_name(plan, 4), 'x');
	assert_false(argument_plan_check(plan, size - 1));
	assert_false(argument_plan_check(plan, 3));
}

/* BPF reads lengths in order: an array's must come first. */
static void plan_whose_length_comes_later_is_refused(void **state)
{
	struct fixture *f = *state;
	autofree struct argument_plan *plan = NULL;
	struct abi_fetch *fetch;

	word(f, 1);
	word(f, 2);
	plan = argument_builder_finish(&f->builder);
	assert_non_null(plan);
	fetch = (struct abi_fetch *)argument_plan_fetches(plan);
	fetch[1].kind = ABI_FETCH_ARRAY;
	fetch[1].element_bytes = 1;
	assert_true(argument_plan_check(plan, argument_plan_size(plan)));
	fetch[1].length_of = 1;
	fetch[1].length_at = 8;
	assert_false(argument_plan_check(plan, argument_plan_size(plan)));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(numbers_have_their_sign_and_width),
		CASE(values_of_enumerations_have_names),
		CASE(characters_are_quoted),
		CASE(bits_are_cut_out),
		CASE(arrays_say_how_many_elements_there_are),
		CASE(infinite_numbers_have_names),
		CASE(what_is_not_there_is_a_question_mark),
		CASE(lengths_that_cannot_be_are_question_marks),
		CASE(texts_end_where_they_end),
		CASE(strings_of_libcxx_have_two_forms),
		CASE(bytes_that_disturb_are_escaped),
		CASE(collections_have_lengths),
		CASE(structs_have_members_unless_they_are_null),
		CASE(interfaces_have_the_name_of_their_type),
		CASE(old_names_of_types_have_lengths_of_two_bytes),
		CASE(long_names_of_types_have_lengths_of_two_digits),
		CASE(values_without_names_stand_alone),
		CASE(no_plan_has_no_arguments),
		CASE(plan_with_a_number_out_of_bounds_is_refused),
		CASE(plan_whose_length_comes_later_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
