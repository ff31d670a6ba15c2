/* SPDX-License-Identifier: Apache-2.0 */
/* agent/trace_arguments/fetch_rule: rules as users write them, and where their mistakes are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/trace_arguments/fetch_rule.h"
#include "base/cleanup.h"
#include "symbolizer/arguments/registers.h"

/* Rules are written with this machine's first registers of Go: %A and %B stand for them. */
#if defined(__aarch64__)
static const char *const register_texts[] = { "x0", "x1" };
#else
static const char *const register_texts[] = { "ax", "bx" };
#endif

static void with_registers(const char *rule, char text[1024])
{
	char *to = text;

	for (; *rule; rule++) {
		if (rule[0] != '%' || (rule[1] != 'A' && rule[1] != 'B')) {
			*to++ = *rule;
			continue;
		}
		*to++ = '%';
		to = mempcpy(to, register_texts[*++rule - 'A'], 2);
	}
	*to = 0;
}

static struct fetch_rule parse(const char *rule)
{
	struct fetch_rule_error error = { 0 };
	struct fetch_rule parsed = { 0 };
	char text[1024];

	with_registers(rule, text);
	if (fetch_rule_parse(text, &parsed, &error))
		fail_msg("%s: %zu: %s", text, error.column, error.message);
	assert_true(argument_plan_check(parsed.plan, argument_plan_size(parsed.plan)));
	return parsed;
}

static void expect_fetch(const struct abi_fetch *fetch, uint8_t origin, uint8_t dereferences,
	uint32_t size, size_t step_count, const int *offsets)
{
	assert_int_equal(fetch->kind, ABI_FETCH_PLAIN);
	assert_int_equal(fetch->origin, origin);
	assert_int_equal(fetch->dereferences, dereferences);
	assert_int_equal(fetch->size, size);
	assert_int_equal(fetch->step_count, step_count);
	for (size_t i = 0; i < step_count; i++)
		assert_int_equal((int32_t)fetch->offsets[i], offsets[i]);
}

/* The one rule WHERE:TYPE. */
static void expect_place(const char *where, uint8_t dereferences, size_t step_count, ...)
{
	autocall(fetch_rule_deinit) struct fetch_rule rule = { 0 };
	int offsets[ABI_FETCH_STEPS];
	char text[256];
	va_list list;

	va_start(list, step_count);
	for (size_t i = 0; i < step_count; i++)
		offsets[i] = va_arg(list, int);
	va_end(list);
	snprintf(text, sizeof(text), "f(a=%s:u32)", where);
	rule = parse(text);
	expect_fetch(argument_plan_fetches(rule.plan), register_of_go(0), dereferences,
		step_count ? 4 : 8, step_count, offsets);
}

/* ---- what is understood --------------------------------------------------------------------- */

static void go_ftrace_example_is_understood(void **)
{
	autocall(fetch_rule_deinit) struct fetch_rule rule =
		parse("main.(*Student).String(s.name=(*+0(%A)):c64, s.name.len=(+8(%A)):s64, "
		      "s.age=(+16(%B)):s64)");
	const struct abi_fetch *fetches = argument_plan_fetches(rule.plan);
	const struct argument *items = argument_plan_items(rule.plan);

	assert_string_equal(rule.function, "main.(*Student).String");
	assert_int_equal(rule.plan->count, 3);
	assert_string_equal(argument_plan_name(rule.plan, items[0].name), "s.name");
	assert_string_equal(argument_plan_name(rule.plan, items[1].name), "s.name.len");
	assert_int_equal(items[0].kind, ARGUMENT_BYTES);
	assert_int_equal(items[0].size, 8);
	assert_int_equal(items[1].kind, ARGUMENT_SIGNED);
	expect_fetch(&fetches[items[0].first], register_of_go(0), 1, 8, 1, (int[]){ 0 });
	expect_fetch(&fetches[items[1].first], register_of_go(0), 0, 8, 1, (int[]){ 8 });
	expect_fetch(&fetches[items[2].first], register_of_go(1), 0, 8, 1, (int[]){ 16 });
	assert_int_equal(fetches[2].at, 16);
	assert_int_equal(rule.plan->fetched_bytes, 24);
}

static void places_are_read_from_the_inside(void **)
{
	expect_place("%A", 0, 0);
	expect_place("(%A)", 0, 0);
	expect_place("((%A))", 0, 0);
	expect_place("+8(%A)", 0, 1, 8);
	expect_place("-8(%A)", 0, 1, -8);
	expect_place("8(%A)", 0, 1, 8);
	expect_place("*(%A)", 1, 1, 0);
	expect_place("*+0x10(%A)", 1, 1, 16);
	expect_place("*-0x10(%A)", 1, 1, -16);
	expect_place("(+1(*+2(*-3(+4(%A)))))", 6, 4, 4, -3, 2, 1);
	expect_place(" ( +4 ( %A ) ) ", 0, 1, 4);
	expect_place("+1(+2(+3(+4(+5(+6(+7(+8(%A))))))))", 0, 8, 8, 7, 6, 5, 4, 3, 2, 1);
}

static void expect_type(const char *name, enum argument_kind kind, uint16_t size)
{
	autocall(fetch_rule_deinit) struct fetch_rule rule = { 0 };
	const struct argument *item;
	char text[64];

	snprintf(text, sizeof(text), "f(a=+0(%%A):%s)", name);
	rule = parse(text);
	item = argument_plan_items(rule.plan);
	assert_int_equal(item->kind, kind);
	assert_int_equal(item->size, size);
	assert_int_equal(argument_plan_fetches(rule.plan)->size, size);
}

static void types_have_their_sizes(void **)
{
	expect_type("s8", ARGUMENT_SIGNED, 1);
	expect_type("s16", ARGUMENT_SIGNED, 2);
	expect_type("s32", ARGUMENT_SIGNED, 4);
	expect_type("s64", ARGUMENT_SIGNED, 8);
	expect_type("u8", ARGUMENT_UNSIGNED, 1);
	expect_type("u64", ARGUMENT_UNSIGNED, 8);
	expect_type("f32", ARGUMENT_FLOAT, 4);
	expect_type("f64", ARGUMENT_FLOAT, 8);
	expect_type("bool", ARGUMENT_BOOL, 1);
	expect_type("c8", ARGUMENT_BYTES, 1);
	expect_type("c24", ARGUMENT_BYTES, 3);
	expect_type("c2048", ARGUMENT_BYTES, 256);
}

static void names_of_functions_may_have_parentheses(void **)
{
	static const char *const names[] = { "main.(*T).F", "main.(**).F", "f",
		"std::map<int, int>::at(int)", "operator()(int (*)(int))", "main.Map[...].Get",
		"ns::operator==(a, b)", "f::{lambda(int)#1}::operator()(int) const",
		"<T as a::Trait>::run" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		autocall(fetch_rule_deinit) struct fetch_rule rule = { 0 };
		char text[256];

		snprintf(text, sizeof(text), "%s (a=%%A:u8)", names[i]);
		rule = parse(text);
		assert_string_equal(rule.function, names[i]);
	}
}

#if !defined(__aarch64__)
static void registers_have_their_names_of_all_widths(void **)
{
	static const char *const same[][3] = { { "ax", "eax", "rax" }, { "si", "esi", "rsi" },
		{ "sp", "esp", "rsp" } };

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(register_by_name(same[i][k], strlen(same[i][k])),
				register_by_name(same[i][0], 2));
	assert_int_equal(register_by_name("r8", 2), 9);
	assert_int_equal(register_by_name("r15", 3), 0);
	assert_int_equal(register_by_name("di", 2), register_by_dwarf(5));
	assert_int_equal(register_by_name("sp", 2), ABI_FETCH_SP);
	assert_int_equal(register_by_name("r16", 3), REGISTER_NONE);
	assert_int_equal(register_by_name("e8", 2), REGISTER_NONE);
	assert_int_equal(register_by_name("8", 1), REGISTER_NONE);
	assert_int_equal(register_by_name("xmm0", 4), REGISTER_NONE);
	assert_int_equal(register_by_name("", 0), REGISTER_NONE);
	assert_int_equal(register_by_name("r", 1), REGISTER_NONE);
	assert_int_equal(register_by_dwarf(16), REGISTER_NONE);
	assert_int_equal(register_of_go(9), REGISTER_NONE);
}
#else
static void registers_have_their_names_of_all_widths(void **)
{
	assert_int_equal(register_by_name("x0", 2), 0);
	assert_int_equal(register_by_name("x30", 3), register_by_name("lr", 2));
	assert_int_equal(register_by_name("x31", 3), REGISTER_NONE);
	assert_int_equal(register_by_name("x01", 3), REGISTER_NONE);
	assert_int_equal(register_by_name("sp", 2), ABI_FETCH_SP);
	assert_int_equal(register_by_dwarf(32), REGISTER_NONE);
	assert_int_equal(register_of_go(16), REGISTER_NONE);
}
#endif

/* ---- mistakes ------------------------------------------------------------------------------- */

/* The mistake is where RULE has a `^`, which is removed. */
static void expect_mistake(const char *rule, const char *message)
{
	struct fetch_rule_error error = { 0 };
	struct fetch_rule parsed = { 0 };
	char marked[1024], *mark;

	with_registers(rule, marked);
	mark = strchr(marked, '^');
	assert_non_null(mark);
	memmove(mark, mark + 1, strlen(mark));
	assert_int_equal(fetch_rule_parse(marked, &parsed, &error), -EINVAL);
	if (error.column != (size_t)(mark - marked) + 1 || !strstr(error.message, message))
		fail_msg("%s: %zu instead of %td: %s", marked, error.column, mark - marked + 1,
			error.message);
	assert_null(parsed.function);
}

static void mistakes_have_their_column(void **)
{
	expect_mistake("^", "expected FUNCTION(");
	expect_mistake("main.f^", "expected FUNCTION(");
	expect_mistake("main.f()^", "expected FUNCTION(");
	expect_mistake("^(a=%A:u8)", "a function's name");
	expect_mistake("f(a=^:u8)", "a register");
	expect_mistake("f(a=%^q:u8)", "unknown register");
	expect_mistake("f(a=%^xmm0:f64)", "unknown register");
	expect_mistake("f(a=%A^)", "expected ':'");
	expect_mistake("f(a=%A:^)", "unknown type");
	expect_mistake("f(a=%A:^u7)", "unknown type");
	expect_mistake("f(a=%A:^u128)", "unknown type");
	expect_mistake("f(a=%A:^f16)", "unknown type");
	expect_mistake("f(a=+0(%A):^c0)", "unknown type");
	expect_mistake("f(a=+0(%A):^c63)", "unknown type");
	expect_mistake("f(a=+0(%A):^c2056)", "unknown type");
	expect_mistake("f(a=+0(%A):^x64)", "unknown type");
	expect_mistake("f(a=%A:^c128)", "a register has 64 bits");
	expect_mistake("f(a=(%A^:u8)", "expected ')'");
	expect_mistake("f(a=+8^%A:u8)", "expected '('");
	expect_mistake("f(a=^+(%A):u8)", "a register");
	expect_mistake("f(a=^+99999999999(%A):u8)", "32 bits");
	expect_mistake("f(a=%A:u8^", "expected ',' or ')'");
	expect_mistake("f(a=%A:u8,^)", "expected NAME=");
	expect_mistake("f(a=%A:u8, b^:u8)", "expected '='");
	expect_mistake("f(a=%A:u8)^x", "nothing may follow");
	expect_mistake("f(a=+1(+2(+3(+4(+5(+6(+7(+8(^+9(%A))))))))):u8)", "more than 8 steps");
}

static void more_values_than_there_is_room_for_are_refused(void **)
{
	expect_mistake("f(a=+0(%A):c2048, ^b=+0(%A):c2048)", "480 bytes");
}

static void too_many_parentheses_are_refused(void **)
{
	struct fetch_rule_error error;
	struct fetch_rule rule;
	char text[4096] = "f(a=";

	memset(text + 4, '(', 4000);
	assert_int_equal(fetch_rule_parse(text, &rule, &error), -EINVAL);
	assert_non_null(strstr(error.message, "too many parentheses"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(go_ftrace_example_is_understood),
		cmocka_unit_test(places_are_read_from_the_inside),
		cmocka_unit_test(types_have_their_sizes),
		cmocka_unit_test(names_of_functions_may_have_parentheses),
		cmocka_unit_test(registers_have_their_names_of_all_widths),
		cmocka_unit_test(mistakes_have_their_column),
		cmocka_unit_test(more_values_than_there_is_room_for_are_refused),
		cmocka_unit_test(too_many_parentheses_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
