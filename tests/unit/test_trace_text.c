/* SPDX-License-Identifier: Apache-2.0 */
/* agent/trace/trace_text: how a call's function and arguments are shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/trace/trace_text.h"

static const char *name_function(void *context, uint32_t number)
{
	(void)number;
	return context;
}

static bool name_has_parameters(void *context, uint32_t number)
{
	(void)number;
	return strchr(context, '(') != NULL;
}

static const char *name_nothing(void *context, uint32_t number)
{
	(void)context;
	(void)number;
	return "";
}

static void name_values(void *context, uint32_t function, bool results, const void *payload,
	size_t size, struct buffer *out)
{
	(void)context;
	(void)function;
	assert_false(results);
	buffer_append(out, payload, size);
}

static bool name_has_values(void *context, uint32_t function)
{
	(void)context;
	(void)function;
	return true;
}

static bool fetched; /* arguments of the functions, whether or not a call has them */

/* Asserts how a call of FUNCTION is shown whose arguments are VALUES; NULL = not known. */
static void assert_shown(const char *function, const char *values, const char *shown)
{
	const struct trace_names names = {
		.function = name_function,
		.has_parameters = name_has_parameters,
		.place = name_nothing,
		.process = name_nothing,
		.values_text = name_values,
		.has_values = fetched ? name_has_values : NULL,
		.context = (void *)function,
	};
	uint8_t payloads[64] = { 0 };
	struct trace_call call = { .duration_ns = 1000, .end = TRACE_CALL_RETURNED };
	struct trace_tree tree = { .calls = &call, .count = 1, .payloads = payloads };
	struct buffer text;
	const char *line;

	if (values) {
		uint32_t size = (uint32_t)strlen(values);

		call.payload = sizeof(size);
		memcpy(payloads + call.payload, &size, sizeof(size));
		memcpy(payloads + call.payload + sizeof(size), values, size);
		tree.payload_bytes = 2 * sizeof(size) + size;
	}
	buffer_init(&text, 4096);
	assert_int_equal(trace_text_tree(&tree, &names, false, &text), 0);
	assert_int_equal(buffer_append(&text, "", 1), 0);
	line = strstr((const char *)text.bytes, "1.00us  ");
	assert_non_null(line);
	line += strlen("1.00us  ");
	assert_int_equal(strcspn(line, "\n"), strlen(shown));
	assert_memory_equal(line, shown, strlen(shown));
	buffer_deinit(&text);
}

static void without_values(void **state)
{
	(void)state;
	assert_shown("main.get", NULL, "main.get()");
	assert_shown("f(int)", NULL, "f(int)");
}

static void values_that_were_not_fetched_are_unknown(void **state)
{
	(void)state;
	fetched = true;
	assert_shown("main.get", NULL, "main.get(?)");
	assert_shown("main.get", "n=1", "main.get(n=1)");
	assert_shown("f(int)", NULL, "f(int)");
	fetched = false;
}

static void values_are_in_the_place_of_types(void **state)
{
	(void)state;
	assert_shown("main.get", "n=1", "main.get(n=1)");
	assert_shown("f(int)", "n=1", "f(n=1)");
	assert_shown("f()", "", "f()");
	assert_shown(
		"a::f(void (*)(int), std::function<void (int)>) const", "g=0x1", "a::f(g=0x1)");
	assert_shown("main::{lambda(int)#1}::operator()(int) const", "n=1",
		"main::{lambda(int)#1}::operator()(n=1)");
	assert_shown("(anonymous namespace)::f(int) [clone .part.0]", "n=1",
		"(anonymous namespace)::f(n=1)");
}

static void names_without_a_list_stay_whole(void **state)
{
	(void)state;
	assert_shown("(anonymous namespace)::f", "n=1", "(anonymous namespace)::f(n=1)");
	assert_shown("f)", "n=1", "f)(n=1)");
	assert_shown("((", "n=1", "(((n=1)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_values),
		cmocka_unit_test(values_that_were_not_fetched_are_unknown),
		cmocka_unit_test(values_are_in_the_place_of_types),
		cmocka_unit_test(names_without_a_list_stay_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
