/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/builds/arguments_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "symbolizer/sandbox/arguments_wire.h"

enum {
	PLAN_MAX_BYTES = sizeof(struct argument_plan) + ABI_FETCHES * sizeof(struct abi_fetch) +
			 ARGUMENTS_MAX * sizeof(struct argument) + ARGUMENT_NAMES_BYTES,
};

void function_arguments_deinit(struct function_arguments *arguments)
{
	free(take(arguments->entry));
	free(take(arguments->results));
	arguments->split = false;
}

static int arguments_take_plan(struct cursor *c, uint32_t size, struct argument_plan **ret_plan)
{
	const void *bytes;
	struct argument_plan *plan;

	if (!size)
		return 0;
	bytes = cursor_bytes(c, size);
	cursor_skip(c, -size % 8);
	if (!bytes || size > PLAN_MAX_BYTES || *ret_plan)
		return -EBADMSG;
	plan = malloc(size);
	if (!plan)
		return -ENOMEM;
	memcpy(plan, bytes, size);
	if (!argument_plan_check(plan, size)) {
		free(plan);
		return -EBADMSG;
	}
	*ret_plan = plan;
	return 0;
}

static int arguments_take_all(struct cursor *c, size_t count, struct function_arguments *items)
{
	while (cursor_left(c)) {
		struct arguments_answer answer;
		const void *bytes = cursor_bytes(c, sizeof(answer));
		int err;

		if (!bytes)
			return -EBADMSG;
		memcpy(&answer, bytes, sizeof(answer));
		if (answer.function >= count)
			return -EBADMSG;
		if (answer.magic == ARGUMENTS_SPLIT_MAGIC) {
			items[answer.function].split = true;
			continue;
		}
		if (answer.magic != ARGUMENTS_ANSWER_MAGIC)
			return -EBADMSG;
		err = arguments_take_plan(c, answer.entry_bytes, &items[answer.function].entry);
		if (!err)
			err = arguments_take_plan(
				c, answer.return_bytes, &items[answer.function].results);
		if (err)
			return err;
	}
	return 0;
}

int arguments_answer_take(
	const void *bytes, size_t size, size_t count, struct function_arguments *ret_items)
{
	struct cursor c = cursor_over(bytes, size);
	int err;

	for (size_t i = 0; i < count; i++)
		ret_items[i] = (struct function_arguments){ 0 };
	err = arguments_take_all(&c, count, ret_items);
	for (size_t i = 0; err && i < count; i++)
		function_arguments_deinit(&ret_items[i]);
	return err;
}
