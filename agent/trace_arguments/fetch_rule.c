/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/trace_arguments/fetch_rule.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/arguments/registers.h"

enum { MAX_PARENTHESES = 64 /* open at a time */ };

/* A parser of one rule; the first mistake ends it. */
struct rule_parser {
	const char *text, *at;
	struct argument_builder *builder;
	struct fetch_rule_error *error;
};

/* A step as written, outermost first; BPF wants the innermost first. */
struct rule_step {
	int64_t offset;
	bool dereferences;
};

struct rule_place {
	struct rule_step steps[ABI_FETCH_STEPS];
	size_t step_count;
	uint8_t origin;
};

struct rule_type {
	enum argument_kind kind;
	uint32_t bytes;
};

__attribute__((format(printf, 3, 4))) static int rule_fail(
	struct rule_parser *p, const char *at, const char *format, ...)
{
	va_list arguments;

	p->error->column = (size_t)(at - p->text) + 1;
	va_start(arguments, format);
	vsnprintf(p->error->message, sizeof(p->error->message), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static void rule_skip_spaces(struct rule_parser *p)
{
	while (*p->at == ' ' || *p->at == '\t')
		p->at++;
}

static int rule_expect(struct rule_parser *p, char wanted)
{
	rule_skip_spaces(p);
	if (*p->at != wanted)
		return rule_fail(p, p->at, "expected '%c'", wanted);
	p->at++;
	return 0;
}

/* ---- where the list begins ------------------------------------------------------------------ */

static bool rule_is_name_byte(char c)
{
	return c && !strchr("=,():%* \t", c);
}

/* Whether NAME= is at TEXT. */
static bool rule_is_assignment(const char *text)
{
	const char *at = text + strspn(text, " \t"), *name = at;

	while (rule_is_name_byte(*at))
		at++;
	return at > name && at[strspn(at, " \t")] == '=';
}

static const char *rule_list_of(const char *text)
{
	for (const char *at = strchr(text, '('); at; at = strchr(at + 1, '('))
		if (rule_is_assignment(at + 1))
			return at;
	return NULL;
}

/* ---- where a value is ----------------------------------------------------------------------- */

static int rule_parse_register(struct rule_parser *p, struct rule_place *place)
{
	const char *name = ++p->at;
	size_t size = 0;

	while (isalnum((unsigned char)name[size]))
		size++;
	place->origin = register_by_name(name, size);
	if (place->origin == REGISTER_NONE)
		return rule_fail(p, name, "unknown register (known: %s)", register_names());
	p->at += size;
	return 0;
}

/* Returns whether a number is there; it may be too large for a step. */
static bool rule_parse_number(struct rule_parser *p, int64_t *ret_number)
{
	bool is_signed = *p->at == '+' || *p->at == '-';
	const char *digits = p->at + is_signed;
	int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
	char *end;

	if (!isdigit((unsigned char)*digits))
		return false;
	*ret_number = strtoll(p->at, &end, base);
	p->at = end;
	return true;
}

static int rule_parse_step(struct rule_parser *p, struct rule_place *place)
{
	struct rule_step step = { .dereferences = *p->at == '*' };
	const char *begin = p->at;

	p->at += step.dereferences;
	if (!rule_parse_number(p, &step.offset) && !step.dereferences)
		return rule_fail(p, p->at, "expected a register (%%ax), an offset or '('");
	if (step.offset < INT32_MIN || step.offset > INT32_MAX)
		return rule_fail(p, begin, "the offset does not fit into 32 bits");
	if (place->step_count == ABI_FETCH_STEPS)
		return rule_fail(p, begin, "more than %d steps", ABI_FETCH_STEPS);
	place->steps[place->step_count++] = step;
	rule_skip_spaces(p);
	if (*p->at != '(')
		return rule_fail(p, p->at, "expected '(' after the offset");
	return 0;
}

/* Goes inwards to the register, then closes as many parentheses as were opened. */
static int rule_parse_place(struct rule_parser *p, struct rule_place *place)
{
	size_t open = 0;
	int err = 0;

	*place = (struct rule_place){ 0 };
	for (rule_skip_spaces(p); !err && *p->at != '%'; rule_skip_spaces(p)) {
		if (*p->at != '(') {
			err = rule_parse_step(p, place);
			continue;
		}
		if (++open > MAX_PARENTHESES)
			return rule_fail(p, p->at, "too many parentheses");
		p->at++;
	}
	if (!err)
		err = rule_parse_register(p, place);
	while (!err && open--)
		err = rule_expect(p, ')');
	return err;
}

/* ---- its type ------------------------------------------------------------------------------- */

static int rule_check_bits(
	struct rule_parser *p, const char *name, unsigned long bits, struct rule_type *type)
{
	bool is_number = bits == 32 || bits == 64 ||
			 (type->kind != ARGUMENT_FLOAT && (bits == 8 || bits == 16));

	if (type->kind == ARGUMENT_BYTES ? !bits || bits % 8 || bits / 8 > ABI_FETCH_VALUE_BYTES
					 : !is_number)
		return rule_fail(p, name,
			"unknown type (s8 to s64, u8 to u64, f32, f64, bool, c8 to c%d)",
			8 * ABI_FETCH_VALUE_BYTES);
	type->bytes = (uint32_t)(bits / 8);
	return 0;
}

static int rule_parse_type(struct rule_parser *p, struct rule_type *ret_type)
{
	static const struct {
		char letter;
		enum argument_kind kind;
	} kinds[] = {
		{ 's', ARGUMENT_SIGNED },
		{ 'u', ARGUMENT_UNSIGNED },
		{ 'f', ARGUMENT_FLOAT },
		{ 'c', ARGUMENT_BYTES },
	};
	const char *name;
	unsigned long bits = 0;
	size_t size = 0;

	rule_skip_spaces(p);
	name = p->at;
	while (isalnum((unsigned char)name[size]))
		size++;
	p->at += size;
	*ret_type = (struct rule_type){ 0 };
	if (size == strlen("bool") && !memcmp(name, "bool", size)) {
		*ret_type = (struct rule_type){ ARGUMENT_BOOL, 1 };
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (*name == kinds[i].letter)
			ret_type->kind = kinds[i].kind;
	if (ret_type->kind && size > 1 && size < 6 && strspn(name + 1, "0123456789") == size - 1)
		bits = strtoul(name + 1, NULL, 10);
	return rule_check_bits(p, name, bits, ret_type);
}

/* ---- the list ------------------------------------------------------------------------------- */

static struct abi_fetch rule_fetch(const struct rule_place *place, const struct rule_type *type)
{
	struct abi_fetch fetch = {
		.kind = ABI_FETCH_PLAIN,
		.origin = place->origin,
		.step_count = (uint8_t)place->step_count,
		.size = place->step_count ? type->bytes : sizeof(uint64_t),
	};

	for (size_t i = 0; i < place->step_count; i++) {
		const struct rule_step *step = &place->steps[place->step_count - 1 - i];

		fetch.offsets[i] = (uint32_t)(int32_t)step->offset;
		if (step->dereferences)
			fetch.dereferences |= (uint8_t)(1U << i);
	}
	return fetch;
}

static int rule_add(struct rule_parser *p, const char *name, size_t name_size,
	const struct rule_place *place, const struct rule_type *type)
{
	const struct abi_fetch fetch = rule_fetch(place, type);
	uint8_t number = argument_builder_fetch(p->builder, &fetch);
	struct argument *argument = argument_builder_add(p->builder, 0);

	if (number == ARGUMENT_NO_FETCH || !argument)
		return rule_fail(p, name,
			"a function has at most %d rules, and their values %d bytes", ABI_FETCHES,
			ABI_FETCHED_BYTES);
	argument->kind = (uint8_t)type->kind;
	argument->size = (uint16_t)type->bytes;
	argument->first = number;
	argument->name = argument_builder_name(p->builder, name, name_size);
	if (!argument->name)
		return rule_fail(p, name, "the names are too long");
	return 0;
}

static int rule_parse_one(struct rule_parser *p)
{
	struct rule_place place;
	struct rule_type type;
	const char *name, *type_at;
	size_t size = 0;
	int err;

	rule_skip_spaces(p);
	name = p->at;
	while (rule_is_name_byte(name[size]))
		size++;
	if (!size)
		return rule_fail(p, name, "expected NAME=");
	p->at += size;
	err = rule_expect(p, '=') ?: rule_parse_place(p, &place) ?: rule_expect(p, ':');
	if (err)
		return err;
	rule_skip_spaces(p);
	type_at = p->at;
	err = rule_parse_type(p, &type);
	if (err)
		return err;
	if (!place.step_count && type.bytes > sizeof(uint64_t))
		return rule_fail(p, type_at,
			"a register has 64 bits; to read memory, write a step: +0(%%ax)");
	return rule_add(p, name, size, &place, &type);
}

static int rule_parse_list(struct rule_parser *p)
{
	int err;

	p->at++;
	for (;;) {
		err = rule_parse_one(p);
		if (err)
			return err;
		rule_skip_spaces(p);
		if (*p->at == ')')
			break;
		if (*p->at != ',')
			return rule_fail(p, p->at, "expected ',' or ')'");
		p->at++;
	}
	p->at++;
	rule_skip_spaces(p);
	return *p->at ? rule_fail(p, p->at, "nothing may follow the list") : 0;
}

static int rule_parse(struct rule_parser *p, size_t *ret_function_size)
{
	const char *list = rule_list_of(p->text), *end = list;

	if (!list)
		return rule_fail(
			p, p->text + strlen(p->text), "expected FUNCTION(NAME=WHERE:TYPE, ...)");
	while (end > p->text && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (end == p->text)
		return rule_fail(p, p->text, "expected a function's name");
	*ret_function_size = (size_t)(end - p->text);
	p->at = list;
	return rule_parse_list(p);
}

int fetch_rule_parse(
	const char *text, struct fetch_rule *ret_rule, struct fetch_rule_error *ret_error)
{
	autofree struct argument_builder *builder = malloc(sizeof(*builder));
	struct rule_parser p = { .text = text, .builder = builder, .error = ret_error };
	struct fetch_rule rule;
	size_t function_size = 0;
	int err;

	if (!builder)
		return -ENOMEM;
	argument_builder_init(builder, 0);
	err = rule_parse(&p, &function_size);
	if (err)
		return err;
	rule.function = strndup(text, function_size);
	rule.plan = argument_builder_finish(builder);
	if (!rule.function || !rule.plan) {
		fetch_rule_deinit(&rule);
		return -ENOMEM;
	}
	*ret_rule = rule;
	return 0;
}

void fetch_rule_deinit(struct fetch_rule *rule)
{
	free(take(rule->function));
	free(take(rule->plan));
}
