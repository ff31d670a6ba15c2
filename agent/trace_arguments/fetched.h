/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The values that a plan's fetches have brought, as text for people and as JSON. A value that was
 * not readable, or that cannot be one (a negative length), is shown as `?`, and in JSON it has
 * `"unknown":true` and no value.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/json.h"
#include "symbolizer/arguments/argument_plan.h"

/*
 * Appends `a=1, s="text", p=&{x=1, y=2}`; nothing if the plan is NULL. Bytes that could disturb a
 * terminal, or are not UTF-8, are escaped. Returns the buffer's error.
 */
int fetched_text(
	const struct argument_plan *plan, const struct abi_fetched *fetched, struct buffer *out);
/* Adds an array of objects; an empty one if the plan is NULL. */
void fetched_json(const struct argument_plan *plan, const struct abi_fetched *fetched,
	struct json *j, const char *key);
