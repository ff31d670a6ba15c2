/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "agent/trace_arguments/fetched.h"
#include "agent/trace_arguments/fetched_value.h"
#include "base/cleanup.h"

static void json_put_text(struct json *j, const char *key, const struct fetched_value *v)
{
	if (v->text)
		json_text_bytes(j, key, v->text, v->text_bytes);
	else
		json_null(j, key);
	if (v->is_cut)
		json_bool(j, "cut", true);
}

static void json_put_address(struct json *j, const char *key, uint64_t address)
{
	char text[24];

	if (!address) {
		json_null(j, key);
		return;
	}
	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	json_text(j, key, text);
}

static void json_put_float(struct json *j, double number)
{
	if (isfinite(number))
		json_double(j, "value", number);
	else
		json_text(j, "value", isnan(number) ? "NaN" : number < 0 ? "-Inf" : "+Inf");
}

static void json_put_lengths(struct json *j, const struct fetched_value *v)
{
	switch (v->kind) {
	case ARGUMENT_STRING:
		json_put_text(j, "value", v);
		json_number(j, "length", v->second);
		break;
	case ARGUMENT_SLICE:
		json_number(j, "length", v->first);
		if (v->argument->second != ARGUMENT_NO_FETCH)
			json_number(j, "capacity", v->second);
		break;
	default:
		if (v->first)
			json_number(j, "length", v->second);
		else
			json_null(j, "value");
	}
}

static void json_put_enum(struct json *j, const struct fetched_value *v)
{
	size_t size;
	const char *name = fetched_value_enumerator(v, &size);

	if (v->argument->is_signed)
		json_signed(j, "value", fetched_value_signed(v));
	else
		json_number(j, "value", v->first);
	if (name)
		json_text_bytes(j, "enumerator", name, size);
}

static void json_put_value(struct json *j, const struct fetched_value *v)
{
	switch (v->kind) {
	case ARGUMENT_SIGNED:
		json_signed(j, "value", fetched_value_signed(v));
		break;
	case ARGUMENT_ENUM:
		json_put_enum(j, v);
		break;
	case ARGUMENT_ARRAY:
		json_number(j, "length", v->argument->size);
		break;
	case ARGUMENT_CHARACTER:
	case ARGUMENT_UNSIGNED:
		json_number(j, "value", v->first);
		break;
	case ARGUMENT_FLOAT:
		json_put_float(j, fetched_value_float(v));
		break;
	case ARGUMENT_BOOL:
		json_bool(j, "value", v->first);
		break;
	case ARGUMENT_POINTER:
	case ARGUMENT_STRUCT_POINTER:
		json_put_address(j, "value", v->first);
		break;
	case ARGUMENT_BYTES:
	case ARGUMENT_C_STRING:
		json_put_text(j, "value", v);
		break;
	case ARGUMENT_STRING:
	case ARGUMENT_SLICE:
	case ARGUMENT_MAP:
		json_put_lengths(j, v);
		break;
	case ARGUMENT_INTERFACE:
		json_put_text(j, v->text ? "dynamic_type" : "value", v);
		break;
	case ARGUMENT_STRUCT:
		break;
	default:
		json_bool(j, "unknown", true);
	}
}

static void json_put_one(const struct fetched_value *v, struct json *j)
{
	json_object(j, NULL);
	json_text(j, "name", fetched_value_name(v));
	if (*fetched_value_type(v))
		json_text(j, "type", fetched_value_type(v));
	json_put_value(j, v);
}

/* Closes what is open down to DEPTH. */
static uint8_t json_leave(struct json *j, uint8_t open, uint8_t depth)
{
	for (; open > depth; open--) {
		json_close(j); /* the members */
		json_close(j); /* what has them */
	}
	return open;
}

void fetched_json(const struct argument_plan *plan, const struct abi_fetched *fetched,
	struct json *j, const char *key)
{
	uint8_t open = 0; /* arguments whose members are being written */

	json_array(j, key);
	for (uint32_t i = 0; plan && i < plan->count; i++) {
		struct fetched_value v;

		fetched_value_of(plan, fetched, &argument_plan_items(plan)[i], &v);
		open = json_leave(j, open, MIN(open, v.argument->depth));
		if (v.argument->depth > open)
			continue; /* a member of what is unknown or null */
		json_put_one(&v, j);
		if (!fetched_value_has_members(&v)) {
			json_close(j);
			continue;
		}
		json_array(j, "members");
		open++;
	}
	json_leave(j, open, 0);
	json_close(j);
}
