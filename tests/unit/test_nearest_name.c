/* SPDX-License-Identifier: Apache-2.0 */
/* agent/sampler/functions/nearest: what a name that nothing has may have meant. */
#include "agent/sampler/functions/nearest.h"
#include "tests/unit/small_index.h"

#include <string.h>

/* What WANTED may have meant among NAMES (up to a NULL); "" = nothing. */
static void expect(const char *wanted, const char *const *names, const char *expected)
{
	struct index_writer *w = create();
	struct nearest_name nearest = { 0 };
	struct index *index;

	writer_source(w, INDEX_SOURCE_FUNCTIONS);
	for (uint64_t i = 0; names[i]; i++)
		assert_int_equal(
			writer_function(w, &(struct writer_function){ .address = TEXT + i * 16,
						   .linkage = string(w, names[i]) }),
			0);
	index = finish(w);
	assert_int_equal(nearest_name_find(index, wanted, &nearest), 0);
	assert_string_equal(nearest.text ? nearest.text : "", expected);
	nearest_name_deinit(&nearest);
	index_destroy(index);
}

static void letters_may_be_wrong_missing_superfluous_or_exchanged(void **)
{
	static const char *const names[] = { "main.serve", "main.handle", "main.handler2", NULL };

	expect("main.hanlde", names, "main.handle");
	expect("main.hand1e", names, "main.handle");
	expect("main.hande", names, "main.handle");
	expect("main.hanndle", names, "main.handle");
	expect("mian.sevre", names, "main.serve");
	expect("main.handler", names, "main.handle");
}

static void names_that_differ_much_are_none(void **)
{
	static const char *const names[] = { "main.handle", "f", "parse", NULL };

	expect("main.shutdown", names, "");
	expect("pars3r", names, "");
	expect("xyz", names, "");
	expect("", names, "");
}

static void a_name_without_its_package_or_class_is_found(void **)
{
	static const char *const names[] = { "main.handles", "main.handle", "_ZN3app5parseEi",
		NULL };

	expect("handle", names, "main.handle");
	expect("parse", names, "app::parse");
	expect("andle", names, "");
}

static void the_longest_names_are_compared_within_bounds(void **)
{
	char name[200], wanted[200];
	const char *const names[] = { name, NULL };

	for (size_t size = 110; size < 135; size++) {
		memset(name, 'a', size);
		name[size] = 0;
		memset(wanted, 'a', 120);
		wanted[120] = 0;
		expect(wanted, names, size >= 112 && size <= 128 ? name : "");
		wanted[120] = 'a';
		wanted[121] = 0;
		expect(wanted, names, "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_may_be_wrong_missing_superfluous_or_exchanged),
		cmocka_unit_test(names_that_differ_much_are_none),
		cmocka_unit_test(a_name_without_its_package_or_class_is_found),
		cmocka_unit_test(the_longest_names_are_compared_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
