/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "base/map.h"

static void map_agrees_with_a_plain_array(void **state)
{
	enum { KEYS = 512, STEPS = 200000 };
	uint64_t model[KEYS] = { 0 }, value, random = 88172645463325252u;
	struct map m;
	size_t count = 0;

	(void)state;
	map_init(&m, KEYS);
	for (int i = 0; i < STEPS; i++) {
		size_t k;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		k = random % KEYS;
		if (random >> 40 & 1) {
			count += !model[k];
			model[k] = random | 1;
			/* Keys with equal low bits make long runs of occupied slots. */
			assert_int_equal(map_set(&m, k << 32, model[k]), 0);
		} else {
			assert_int_equal(map_remove(&m, k << 32), model[k] != 0);
			count -= model[k] != 0;
			model[k] = 0;
		}
		assert_int_equal(m.count, count);
		k = (random >> 20) % KEYS;
		assert_int_equal(map_get(&m, k << 32, &value), model[k] != 0);
		if (model[k])
			assert_true(value == model[k]);
	}
	map_deinit(&m);
}

static void map_walks_every_entry_once(void **state)
{
	struct map m;
	uint64_t key, value, sum = 0;
	size_t iterator = 0, seen = 0;

	(void)state;
	map_init(&m, 1000);
	for (uint64_t k = 0; k < 100; k++)
		assert_int_equal(map_set(&m, k, k * 3), 0);
	while (map_next(&m, &iterator, &key, &value)) {
		assert_true(value == key * 3);
		sum += key;
		seen++;
	}
	assert_int_equal(seen, 100);
	assert_true(sum == 4950);
	map_deinit(&m);
}

static void map_keeps_its_limit(void **state)
{
	struct map m;

	(void)state;
	map_init(&m, 2);
	assert_int_equal(map_set(&m, 1, 1), 0);
	assert_int_equal(map_set(&m, 2, 1), 0);
	assert_int_equal(map_set(&m, 3, 1), -E2BIG);
	assert_int_equal(map_set(&m, 2, 5), 0);
	map_deinit(&m);
}

static void map_gives_memory_back_after_a_burst(void **state)
{
	struct map m;
	uint64_t value;
	size_t most;

	(void)state;
	map_init(&m, 100000);
	for (uint64_t k = 0; k < 100000; k++)
		assert_int_equal(map_set(&m, k, k * 3), 0);
	most = m.capacity;
	map_trim(&m);
	assert_int_equal(m.capacity, most);
	for (uint64_t k = 0; k < 99900; k++)
		assert_true(map_remove(&m, k));
	map_trim(&m);
	assert_true(m.capacity <= most / 16);
	for (uint64_t k = 0; k < 100000; k++)
		assert_int_equal(map_get(&m, k, &value) && value == k * 3, k >= 99900);
	map_deinit(&m);
}

static void buffer_grows_to_its_limit(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 10);
	assert_int_equal(buffer_string(&b, "12345678"), 0);
	assert_int_equal(buffer_string(&b, "abc"), -E2BIG);
	assert_int_equal(b.size, 8);
	/* The first failure stays, so that a writer may check once. */
	assert_int_equal(buffer_string(&b, "a"), -E2BIG);
	buffer_deinit(&b);
}

static void buffer_prints(void **state)
{
	struct buffer b;

	(void)state;
	buffer_init(&b, 1000);
	assert_int_equal(buffer_printf(&b, "%d-%s", 7, "x"), 0);
	assert_int_equal(b.size, 3);
	assert_memory_equal(b.bytes, "7-x", 3);
	buffer_deinit(&b);
}

static void arena_aligns_and_keeps_its_limit(void **state)
{
	struct arena a;
	char *first, *second;

	(void)state;
	arena_init(&a, 100);
	first = arena_alloc(&a, 3);
	second = arena_zalloc(&a, 50);
	assert_non_null(first);
	assert_non_null(second);
	assert_int_equal((uintptr_t)second % 8, 0);
	assert_int_equal(second[49], 0);
	assert_null(arena_alloc(&a, 100));
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_int_equal(a.error, -E2BIG);
	arena_reset(&a);
	assert_int_equal(a.error, 0);
	assert_non_null(arena_alloc(&a, 96));
	arena_deinit(&a);
}

static void arena_strings(void **state)
{
	const char *first, *second;
	struct arena a;
	char *large;

	(void)state;
	arena_init(&a, 1 << 20);
	first = arena_strndup(&a, "hello", 4);
	/* More than a chunk: it gets a chunk of its own, and existing contents stay. */
	large = arena_alloc(&a, 200000);
	assert_non_null(large);
	memset(large, 'x', 200000);
	second = arena_strndup(&a, "world", 5);
	assert_string_equal(first, "hell");
	assert_string_equal(second, "world");
	for (size_t i = 0; i < 200000; i++)
		assert_int_equal(large[i], 'x');
	assert_in_range(a.total_bytes, 200000 + 16, 1 << 20);
	assert_null(arena_alloc(&a, (1 << 20) - 200000));
	arena_reset(&a);
	assert_int_equal(a.total_bytes, 0);
	assert_string_equal(arena_strndup(&a, "", 0), "");
	arena_deinit(&a);
}

static void intern_gives_each_content_one_number(void **state)
{
	struct intern in;
	char text[16];
	uint32_t number, again;

	(void)state;
	assert_int_equal(intern_init(&in, 5000, 1 << 20), 0);
	assert_int_equal(intern_string(&in, "", &number), 0);
	assert_int_equal(number, 0);
	for (uint32_t i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "s%u", i);
		assert_int_equal(intern_string(&in, text, &number), 0);
		assert_int_equal(number, i + 1);
	}
	for (uint32_t i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "s%u", i);
		assert_int_equal(intern_string(&in, text, &again), 0);
		assert_int_equal(again, i + 1);
		assert_string_equal(intern_text(&in, again), text);
	}
	assert_string_equal(intern_text(&in, 999999), "");
	intern_deinit(&in);
}

static void intern_knows_bytes_with_nul(void **state)
{
	struct intern in;
	uint32_t one, two;

	(void)state;
	assert_int_equal(intern_init(&in, 10, 1000), 0);
	assert_int_equal(intern_bytes(&in, "a\0b", 3, &one), 0);
	assert_int_equal(intern_bytes(&in, "a\0c", 3, &two), 0);
	assert_int_not_equal(one, two);
	assert_int_equal(intern_size(&in, one), 3);
	intern_deinit(&in);
}

static void intern_keeps_its_limits(void **state)
{
	struct intern in;
	uint32_t number = 77;

	(void)state;
	assert_int_equal(intern_init(&in, 2, 1000), 0);
	assert_int_equal(intern_string(&in, "a", &number), 0);
	assert_int_equal(intern_string(&in, "b", &number), -E2BIG);
	assert_int_equal(number, 1);
	intern_deinit(&in);
}

static void array_grows_by_its_rule(void **state)
{
	int *items = NULL;
	size_t capacity = 0;

	(void)state;
	assert_int_equal(array_reserve(items, capacity, 3, 100), 0);
	assert_true(capacity >= 3);
	assert_int_equal(array_reserve(items, capacity, 100, 100), 0);
	assert_int_equal(capacity, 100);
	assert_int_equal(array_reserve(items, capacity, 101, 100), -E2BIG);
	assert_int_equal(array_reserve(items, capacity, SIZE_MAX / 2, SIZE_MAX), -ENOMEM);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_agrees_with_a_plain_array),
		cmocka_unit_test(map_walks_every_entry_once),
		cmocka_unit_test(map_keeps_its_limit),
		cmocka_unit_test(map_gives_memory_back_after_a_burst),
		cmocka_unit_test(buffer_grows_to_its_limit),
		cmocka_unit_test(buffer_prints),
		cmocka_unit_test(arena_aligns_and_keeps_its_limit),
		cmocka_unit_test(arena_strings),
		cmocka_unit_test(intern_gives_each_content_one_number),
		cmocka_unit_test(intern_knows_bytes_with_nul),
		cmocka_unit_test(intern_keeps_its_limits),
		cmocka_unit_test(array_grows_by_its_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
