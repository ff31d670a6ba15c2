/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as the answers in a file of kept arguments, with a right header and checksum so
 * that they are read. All plans that are taken must be sound, and what they fetch clean text.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "agent/trace_arguments/fetched.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "symbolizer/builds/kept_arguments.h"
#include "symbolizer/sandbox/arguments_wire.h"

enum { FUNCTIONS = 4, MAX_BYTES = 64 * 1024, SUM_BYTES = sizeof(uint64_t) };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void show(const struct argument_plan *plan)
{
	autocall(buffer_deinit) struct buffer out = { 0 };
	struct abi_fetched fetched;

	if (!plan)
		return;
	check(argument_plan_check(plan, argument_plan_size(plan)));
	memset(&fetched, 1, sizeof(fetched));
	buffer_init(&out, 1 << 20);
	check(!fetched_text(plan, &fetched, &out));
	check(utf8_is_clean((const char *)out.bytes, out.size));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const uint64_t entries[FUNCTIONS] = { 0x1000, 0x2000, 0x3000, 0x4000 };
	static const struct module_id id = { .content.bytes[0] = 1 };
	static uint8_t file[MAX_BYTES];
	const struct arguments_wanted wanted = {
		.id = &id,
		.entries = entries,
		.count = FUNCTIONS,
	};
	struct kept_arguments_header header = {
		.magic = KEPT_ARGUMENTS_MAGIC,
		.version = ARGUMENTS_VERSION,
		.count = FUNCTIONS,
		.content = id.content,
	};
	size_t end = sizeof(header) + sizeof(entries);
	struct function_arguments items[FUNCTIONS];
	uint64_t sum;
	int err;

	if (size > MAX_BYTES - end - SUM_BYTES)
		return 0;
	header.file_bytes = end + size + SUM_BYTES;
	memcpy(file, &header, sizeof(header));
	memcpy(file + sizeof(header), entries, sizeof(entries));
	memcpy(file + end, bytes, size);
	end += size;
	sum = XXH3_64bits(file, end);
	memcpy(file + end, &sum, sizeof(sum));
	err = kept_arguments_take(&wanted, file, end + SUM_BYTES, items);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		check(!err || (!items[i].entry && !items[i].results));
		show(items[i].entry);
		show(items[i].results);
		function_arguments_deinit(&items[i]);
	}
	return 0;
}
