/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as a module, through all sources into an index, which must open and answer
 * lookups all over its code.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/builder.h"
#include "symbolizer/index/index.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	autoclose int elf = memfd_create("fuzz", MFD_CLOEXEC);
	autoclose int output = memfd_create("fuzz", MFD_CLOEXEC);
	struct sandbox_result result;
	struct index *index;

	if (elf < 0 || output < 0 || io_write_all(elf, bytes, size))
		return 0;
	if (builder_run(elf, output, &result))
		return 0;
	if (index_open(output, &index))
		abort();
	ask(index);
	index_destroy(index);
	return 0;
}
