/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/server/export/payload.h"

static void names_are_sorted_and_unique(void **state)
{
	struct labels l = { 0 };

	(void)state;
	assert_int_equal(labels_set(&l, "service_name", "shop"), 0);
	assert_int_equal(labels_set(&l, "__name__", "process_cpu"), 0);
	assert_int_equal(labels_set(&l, "node", "a"), 0);
	assert_int_equal(labels_set(&l, "node", "b"), 0);
	assert_int_equal(l.count, 3);
	assert_string_equal(l.items[0].name, "__name__");
	assert_string_equal(l.items[1].name, "node");
	assert_string_equal(l.items[2].name, "service_name");
	assert_string_equal(labels_get(&l, "node"), "b");
	assert_null(labels_get(&l, "nod"));
	labels_deinit(&l);
	assert_int_equal(l.count, 0);
}

static void an_empty_value_removes(void **state)
{
	struct labels l = { 0 };

	(void)state;
	assert_int_equal(labels_set(&l, "a", "1"), 0);
	assert_int_equal(labels_set(&l, "b", "2"), 0);
	assert_int_equal(labels_set(&l, "a", ""), 0);
	assert_int_equal(labels_set(&l, "never", ""), 0);
	assert_int_equal(l.count, 1);
	assert_null(labels_get(&l, "a"));
	assert_string_equal(labels_get(&l, "b"), "2");
	labels_deinit(&l);
}

static void names_are_prometheus_names(void **state)
{
	static const char *const bad[] = { "", "1a", "a-b", "a.b", "a b", "\xc3\xa4" };
	struct labels l = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(labels_set(&l, bad[i], "x"), -EINVAL);
	assert_int_equal(labels_set(&l, "_A9", "x"), 0);
	assert_int_equal(l.count, 1);
	labels_deinit(&l);
}

static void values_become_utf8(void **state)
{
	struct labels l = { 0 };

	(void)state;
	assert_int_equal(labels_set(&l, "comm",
				 "a\xff"
				 "b\xc3\xa4"),
		0);
	assert_string_equal(labels_get(&l, "comm"), "a?b\xc3\xa4");
	labels_deinit(&l);
}

static void limits_are_kept(void **state)
{
	char text[LABEL_VALUE_BYTES + 2];
	struct labels l = { 0 };
	char name[16];

	(void)state;
	for (int i = 0; i < LABELS_LIMIT; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		assert_int_equal(labels_set(&l, name, "x"), 0);
	}
	assert_int_equal(labels_set(&l, "more", "x"), -E2BIG);
	assert_int_equal(labels_set(&l, "l0", "y"), 0);
	memset(text, 'v', sizeof(text));
	text[LABEL_VALUE_BYTES + 1] = 0;
	assert_int_equal(labels_set(&l, "l0", text), -E2BIG);
	assert_string_equal(labels_get(&l, "l0"), "y");
	text[LABEL_VALUE_BYTES] = 0;
	assert_int_equal(labels_set(&l, "l0", text), 0);
	labels_deinit(&l);
}

static void a_copy_is_independent(void **state)
{
	struct labels l = { 0 }, copy;

	(void)state;
	assert_int_equal(labels_set(&l, "a", "1"), 0);
	assert_int_equal(labels_copy(&l, &copy), 0);
	assert_int_equal(labels_set(&l, "a", "2"), 0);
	assert_string_equal(labels_get(&copy, "a"), "1");
	labels_deinit(&copy);
	labels_deinit(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_sorted_and_unique),
		cmocka_unit_test(an_empty_value_removes),
		cmocka_unit_test(names_are_prometheus_names),
		cmocka_unit_test(values_become_utf8),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(a_copy_is_independent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
