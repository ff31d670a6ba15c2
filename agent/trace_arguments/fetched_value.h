/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One argument of a plan with what was fetched for it; what fetched_text.c and fetched_json.c
 * share. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/arguments/argument_plan.h"

struct fetched_value {
	const struct argument_plan *plan;
	const struct abi_fetched *fetched;
	const struct argument *argument;
	enum argument_kind kind; /* ARGUMENT_UNKNOWN if a fetch that it needs has failed;
				    ARGUMENT_STRING for both forms of text */
	uint64_t first; /* kinds whose first fetch is a number or an address: its value */
	uint64_t second; /* kinds whose second fetch is one */
	const char *text; /* of texts and of a type's name; NULL = none */
	size_t text_bytes;
	bool is_cut; /* there is more text than that */
};

/* Largest length of a string, slice or map that is believed: user addresses have 47 bits. */
static const uint64_t FETCHED_LENGTH_MAX = UINT64_C(1) << 47;

void fetched_value_of(const struct argument_plan *plan, const struct abi_fetched *fetched,
	const struct argument *argument, struct fetched_value *ret_value);
int64_t fetched_value_signed(const struct fetched_value *v);
double fetched_value_float(const struct fetched_value *v);
static inline const char *fetched_value_name(const struct fetched_value *v)
{
	return argument_plan_name(v->plan, v->argument->name);
}
static inline const char *fetched_value_type(const struct fetched_value *v)
{
	return argument_plan_name(v->plan, v->argument->type);
}
/* The name of an ARGUMENT_ENUM's value; NULL = none. Sets its length. */
const char *fetched_value_enumerator(const struct fetched_value *v, size_t *ret_size);
/* Whether it has members, which follow it in the plan. */
static inline bool fetched_value_has_members(const struct fetched_value *v)
{
	return v->kind == ARGUMENT_STRUCT || v->kind == ARGUMENT_ARRAY ||
	       (v->kind == ARGUMENT_STRUCT_POINTER && v->first);
}
