/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a module, through all sources into an index with functions, which must open
 * and answer lookups all over its code. Functions, and the returns of each, must be in order.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/index/functions.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/indexer/code/decoder.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void ask(const struct index *index)
{
	struct index_frame frames[8];
	volatile size_t sum = 0;

	for (size_t s = 0; s < index_segment_count(index) && s < 4; s++) {
		struct index_segment segment = index_segment(index, s);

		for (uint64_t at = 0; at < segment.size && at < 512; at++) {
			size_t count = index_lookup(index, segment.address + at, frames, 8);

			for (size_t i = 0; i < count; i++)
				sum += strlen(frames[i].name) + strlen(frames[i].file);
		}
	}
}

static void ask_returns(const struct index *index, size_t number, uint32_t count)
{
	uint64_t last = 0, file_off;

	for (size_t i = 0; i < count; i++) {
		uint64_t address = index_function_return(index, number, i);

		if (address <= last)
			abort();
		last = address;
		index_file_off(index, address, &file_off);
	}
}

static void ask_functions(const struct index *index)
{
	struct index_function f;
	uint64_t last = 0;

	if (!index_has_functions(index))
		abort();
	for (size_t i = 0; i < index_function_count(index); i++) {
		if (!index_function(index, i, &f) || f.address < last ||
			(f.flags & INDEX_FUNCTION_UNDECODED && f.return_count))
			abort();
		last = f.address;
		ask_returns(index, i, f.return_count);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	code_libraries_load(true);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	autoclose int elf = memfd_create("fuzz", MFD_CLOEXEC);
	autoclose int output = memfd_create("fuzz", MFD_CLOEXEC);
	const struct sandbox_files files = {
		.elf_fd = elf, .output_fd = output, .wants_functions = true
	};
	struct sandbox_result result;
	struct index *index;

	if (elf < 0 || output < 0 || io_write_all(elf, bytes, size))
		return 0;
	if (builder_run_files(&files, &result))
		return 0;
	if (index_open(output, &index))
		abort();
	ask(index);
	ask_functions(index);
	index_destroy(index);
	return 0;
}
