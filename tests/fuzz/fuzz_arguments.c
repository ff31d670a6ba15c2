/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a file with DWARF, which is asked for the arguments of functions at each 16th
 * address of its first pages of code. All plans must be sound, and what they fetch is shown as
 * clean text.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/trace_arguments/fetched.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/utf8.h"
#include "symbolizer/indexer/arguments/arguments.h"
#include "symbolizer/sandbox/arguments_wire.h"

enum { CODE = 0x1000, FUNCTION_BYTES = 16, FUNCTIONS = 256, MAX_ANSWER = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void ask(int fd)
{
	const struct arguments_question question = {
		.magic = ARGUMENTS_QUESTION_MAGIC,
		.count = FUNCTIONS,
	};
	uint64_t entries[FUNCTIONS];

	for (size_t i = 0; i < FUNCTIONS; i++)
		entries[i] = CODE + i * FUNCTION_BYTES;
	check(!io_write_all(fd, &question, sizeof(question)) &&
		!io_write_all(fd, entries, sizeof(entries)));
}

/* With DATA as what was fetched. */
static void show(const struct argument_plan *plan, const uint8_t *data, size_t size)
{
	autocall(buffer_deinit) struct buffer out;
	struct abi_fetched fetched;
	struct json j;

	memset(&fetched, 1, sizeof(fetched));
	memcpy(fetched.bytes, data, MIN(size, sizeof(fetched.bytes)));
	buffer_init(&out, 1 << 20);
	check(!fetched_text(plan, &fetched, &out));
	check(utf8_is_clean((const char *)out.bytes, out.size));
	json_init(&j, &out, JSON_COMPACT);
	fetched_json(plan, &fetched, &j, NULL);
	check(!json_finish(&j));
}

/* Returns how many bytes the plan takes. */
static size_t take_plan(const uint8_t *at, size_t size, const uint8_t *data, size_t data_size)
{
	if (size) {
		check(argument_plan_check(at, size));
		show((const struct argument_plan *)at, data, data_size);
	}
	return (size + 7) / 8 * 8;
}

static void take_answers(const uint8_t *at, size_t left, const uint8_t *data, size_t data_size)
{
	while (left) {
		struct arguments_answer answer;
		size_t taken = sizeof(answer);

		check(left >= taken);
		memcpy(&answer, at, sizeof(answer));
		check(answer.function < FUNCTIONS);
		check(answer.magic == ARGUMENTS_ANSWER_MAGIC ||
			(answer.magic == ARGUMENTS_SPLIT_MAGIC && !answer.entry_bytes &&
				!answer.return_bytes));
		taken += take_plan(at + taken, answer.entry_bytes, data, data_size);
		taken += take_plan(at + taken, answer.return_bytes, data, data_size);
		check(left >= taken);
		at += taken;
		left -= taken;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	autoclose int elf = memfd_create("fuzz", MFD_CLOEXEC);
	autoclose int output = memfd_create("fuzz", MFD_CLOEXEC);
	const struct sandbox_files files = { .elf_fd = elf, .output_fd = output };
	struct sandbox_result result = { 0 };
	autofree uint8_t *answers = malloc(MAX_ANSWER);
	ssize_t answered;

	if (elf < 0 || output < 0 || !answers || io_write_all(elf, bytes, size))
		return 0;
	ask(output);
	if (arguments_run(&files, &result))
		return 0;
	answered = io_read_at(output, 0, answers, MAX_ANSWER);
	check(answered >= 0);
	take_answers(answers, (size_t)answered, bytes, size);
	return 0;
}
