/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule, ended by a zero, then what was fetched. A plan made of a rule is sound, what a mistake
 * points at is in the rule, and values are shown as clean text. The bytes behind the rule are also
 * taken for a plan from the sandbox: one that passes the check can be shown.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/trace_arguments/fetch_rule.h"
#include "agent/trace_arguments/fetched.h"
#include "base/cleanup.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void show(const struct argument_plan *plan, const uint8_t *data, size_t size)
{
	autocall(buffer_deinit) struct buffer out;
	struct abi_fetched fetched = { 0 };
	struct json j;

	memcpy(&fetched, data, MIN(size, sizeof(fetched)));
	buffer_init(&out, 1 << 20);
	check(!fetched_text(plan, &fetched, &out));
	check(utf8_is_clean((const char *)out.bytes, out.size));
	json_init(&j, &out, JSON_COMPACT);
	fetched_json(plan, &fetched, &j, NULL);
	check(!json_finish(&j));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = strndup((const char *)data, size);
	size_t length = strlen(text) + (strlen(text) < size);
	autofree uint8_t *plan = malloc(size - length + 1);
	struct fetch_rule_error error;
	struct fetch_rule rule;

	check(plan != NULL);
	data += length;
	size -= length;
	memcpy(plan, data, size);
	if (argument_plan_check(plan, size))
		show((const struct argument_plan *)plan, data, size);
	if (fetch_rule_parse(text, &rule, &error)) {
		check(error.column >= 1 && error.column <= strlen(text) + 1);
		return 0;
	}
	check(argument_plan_check(rule.plan, argument_plan_size(rule.plan)));
	show(rule.plan, data, size);
	fetch_rule_deinit(&rule);
	return 0;
}
