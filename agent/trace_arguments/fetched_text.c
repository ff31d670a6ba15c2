/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "agent/trace_arguments/fetched.h"
#include "agent/trace_arguments/fetched_value.h"
#include "base/utf8.h"

/* The length of the sequence at TEXT if a terminal may get it as it is, else 0. */
static size_t text_plain_length(const char *text, size_t size)
{
	size_t length = utf8_length(text, size);

	return length && utf8_is_clean(text, length) && *text != '"' && *text != '\\' ? length : 0;
}

static void text_put_escaped_byte(struct buffer *out, unsigned char byte)
{
	switch (byte) {
	case '"':
	case '\\':
		buffer_printf(out, "\\%c", byte);
		break;
	case '\n':
		buffer_string(out, "\\n");
		break;
	case '\r':
		buffer_string(out, "\\r");
		break;
	case '\t':
		buffer_string(out, "\\t");
		break;
	default:
		buffer_printf(out, "\\x%02x", byte);
	}
}

static void text_put_quoted(struct buffer *out, const char *text, size_t size)
{
	buffer_string(out, "\"");
	for (size_t at = 0; at < size;) {
		size_t length = text_plain_length(text + at, size - at);

		if (length)
			buffer_append(out, text + at, length);
		else
			text_put_escaped_byte(out, (unsigned char)text[at]);
		at += length ? length : 1;
	}
	buffer_string(out, "\"");
}

/* What is missing of a cut text. */
static void text_put_cut(struct buffer *out, const struct fetched_value *v)
{
	if (!v->is_cut)
		return;
	buffer_string(out, "...");
	if (v->kind == ARGUMENT_STRING)
		buffer_printf(out, "(%" PRIu64 " bytes)", v->second);
}

static void text_put_null(struct buffer *out, const struct fetched_value *v)
{
	buffer_string(out, v->plan->flags & ARGUMENT_PLAN_GO ? "nil" : "NULL");
}

static void text_put_float(struct buffer *out, double number)
{
	char text[JSON_DOUBLE_BYTES];

	if (isnan(number))
		buffer_string(out, "NaN");
	else if (isinf(number))
		buffer_string(out, number < 0 ? "-Inf" : "+Inf");
	else
		buffer_string(out, json_double_text(number, text));
}

static void text_put_number(struct buffer *out, const struct fetched_value *v)
{
	switch (v->kind) {
	case ARGUMENT_SIGNED:
		buffer_printf(out, "%" PRId64, fetched_value_signed(v));
		break;
	case ARGUMENT_FLOAT:
		text_put_float(out, fetched_value_float(v));
		break;
	case ARGUMENT_BOOL:
		buffer_string(out, v->first ? "true" : "false");
		break;
	default:
		buffer_printf(out, "%" PRIu64, v->first);
	}
}

static void text_put_enum(struct buffer *out, const struct fetched_value *v)
{
	size_t size;
	const char *name = fetched_value_enumerator(v, &size);

	if (name)
		buffer_append(out, name, size);
	else if (v->argument->is_signed)
		buffer_printf(out, "%" PRId64, fetched_value_signed(v));
	else
		buffer_printf(out, "%" PRIu64, v->first);
}

/* In C's form; what is no character of its own is a number in it. */
static void text_put_character(struct buffer *out, const struct fetched_value *v)
{
	if (v->first >= ' ' && v->first < 0x7f)
		buffer_printf(out, v->first == '\'' || v->first == '\\' ? "'\\%c'" : "'%c'",
			(char)v->first);
	else if (v->first == '\n')
		buffer_string(out, "'\\n'");
	else if (v->argument->size == 1)
		buffer_printf(out, "'\\x%02x'", (unsigned int)v->first);
	else
		buffer_printf(out, "'\\u{%x}'", (unsigned int)v->first);
}

static void text_put_slice(struct buffer *out, const struct fetched_value *v)
{
	buffer_printf(out, "[len %" PRIu64, v->first);
	if (v->argument->second != ARGUMENT_NO_FETCH)
		buffer_printf(out, ", cap %" PRIu64, v->second);
	buffer_string(out, "]");
}

static void text_put_address(struct buffer *out, const struct fetched_value *v)
{
	if (v->first)
		buffer_printf(out, "0x%" PRIx64, v->first);
	else
		text_put_null(out, v);
}

static void text_put_string(struct buffer *out, const struct fetched_value *v)
{
	if (!v->text) {
		text_put_null(out, v);
		return;
	}
	text_put_quoted(out, v->text, v->text_bytes);
	text_put_cut(out, v);
}

/* A type's name comes from the traced process. */
static void text_put_interface(struct buffer *out, const struct fetched_value *v)
{
	if (!v->text) {
		text_put_null(out, v);
		return;
	}
	buffer_string(out, "<");
	for (size_t at = 0; at < v->text_bytes;) {
		size_t length = text_plain_length(v->text + at, v->text_bytes - at);

		buffer_append(out, length ? v->text + at : "?", length ? length : 1);
		at += length ? length : 1;
	}
	text_put_cut(out, v);
	buffer_string(out, ">");
}

static void text_put_map(struct buffer *out, const struct fetched_value *v)
{
	if (v->first)
		buffer_printf(out, "map[len %" PRIu64 "]", v->second);
	else
		text_put_null(out, v);
}

static void text_put_value(struct buffer *out, const struct fetched_value *v)
{
	switch (v->kind) {
	case ARGUMENT_SIGNED:
	case ARGUMENT_UNSIGNED:
	case ARGUMENT_FLOAT:
	case ARGUMENT_BOOL:
		text_put_number(out, v);
		break;
	case ARGUMENT_POINTER:
	case ARGUMENT_STRUCT_POINTER: /* without members: it is null */
		text_put_address(out, v);
		break;
	case ARGUMENT_BYTES:
	case ARGUMENT_C_STRING:
	case ARGUMENT_STRING:
		text_put_string(out, v);
		break;
	case ARGUMENT_ENUM:
		text_put_enum(out, v);
		break;
	case ARGUMENT_CHARACTER:
		text_put_character(out, v);
		break;
	case ARGUMENT_SLICE:
		text_put_slice(out, v);
		break;
	case ARGUMENT_MAP:
		text_put_map(out, v);
		break;
	case ARGUMENT_INTERFACE:
		text_put_interface(out, v);
		break;
	default:
		buffer_string(out, "?");
	}
}

/* Where an argument's members end. */
static uint32_t text_end_of(const struct argument_plan *plan, uint32_t number)
{
	const struct argument *items = argument_plan_items(plan);
	uint32_t end = number + 1;

	while (end < plan->count && items[end].depth > items[number].depth)
		end++;
	return end;
}

/* The arguments from BEGIN to END: those of one depth, with their members. */
static void text_put_level(const struct argument_plan *plan, const struct abi_fetched *fetched,
	uint32_t begin, uint32_t end, struct buffer *out)
{
	for (uint32_t i = begin, next; i < end; i = next) {
		struct fetched_value v;

		next = text_end_of(plan, i);
		fetched_value_of(plan, fetched, &argument_plan_items(plan)[i], &v);
		if (i > begin)
			buffer_string(out, ", ");
		if (*fetched_value_name(&v))
			buffer_printf(out, "%s=", fetched_value_name(&v));
		if (!fetched_value_has_members(&v)) {
			text_put_value(out, &v);
			continue;
		}
		buffer_string(out, v.kind == ARGUMENT_ARRAY    ? "["
				   : v.kind == ARGUMENT_STRUCT ? "{"
							       : "&{");
		text_put_level(plan, fetched, i + 1, next, out); /* at most ARGUMENT_MAX_DEPTH */
		if (v.kind == ARGUMENT_ARRAY && v.argument->size > next - i - 1)
			buffer_printf(out, ", ...(%u)", v.argument->size);
		buffer_string(out, v.kind == ARGUMENT_ARRAY ? "]" : "}");
	}
}

int fetched_text(
	const struct argument_plan *plan, const struct abi_fetched *fetched, struct buffer *out)
{
	if (plan)
		text_put_level(plan, fetched, 0, plan->count, out);
	return out->error;
}
