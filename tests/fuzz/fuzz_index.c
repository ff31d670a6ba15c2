/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as an index file, with a valid header and checksum so that they are read. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/index/format.h"
#include "symbolizer/index/functions.h"
#include "symbolizer/index/index.h"
#include "symbolizer/index/unwind.h"

enum { MAX_BYTES = 64 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void ask(const struct index *index, uint64_t base)
{
	struct index_frame frames[INDEX_MAX_FRAMES];
	volatile size_t sum = 0;
	uint64_t address;
	size_t segment;

	for (uint64_t at = base; at - base < 0x20000; at += at - base < 0x100 ? 1 : 0x777) {
		size_t count = index_lookup(index, at, frames, INDEX_MAX_FRAMES);

		for (size_t i = 0; i < count; i++)
			sum += strlen(frames[i].name) + strlen(frames[i].linkage) +
			       strlen(frames[i].file);
	}
	index_address(index, base, &address, &segment);
	sum += strlen(index_text_build_id(index)) + strlen(index_toolchain(index));
}

static void ask_pages(const struct index *index, uint64_t base)
{
	const struct abi_unwind_page *page;
	struct abi_unwind_rule rule;
	size_t size;
	bool good;

	for (size_t i = 0; i < MIN(index_unwind_page_count(index), (size_t)64); i++) {
		uint64_t address = index_unwind_page_address(index, i);

		if (!index_unwind_page(index, address, &page, &size))
			continue;
		good = unwind_page_check(page, size);
		for (uint32_t offset = 0; offset < 1 << ABI_UNWIND_PAGE_SHIFT; offset += 0x777)
			if (!unwind_rule_at(page, size, offset, &rule) && good)
				abort();
	}
	index_unwind_page(index, base, &page, &size);
}

static void ask_functions(const struct index *index)
{
	struct index_inlined inlined;
	volatile size_t sum = 0;
	struct index_function f;

	for (size_t i = 0; i < MIN(index_function_count(index) + 1, (size_t)64); i++) {
		if (!index_function(index, i, &f))
			continue;
		sum += strlen(f.name) + strlen(f.linkage);
		for (size_t j = 0; j < MIN(f.return_count, 64U); j++)
			sum += index_function_return(index, i, j);
		sum += index_function_return(index, i, f.return_count - 1);
	}
	for (size_t i = 0; i < MIN(index_inlined_count(index) + 1, (size_t)64); i++)
		if (index_inlined(index, i, &inlined))
			sum += strlen(inlined.name) + strlen(inlined.linkage) +
			       strlen(inlined.caller) + strlen(inlined.file);
}

/* The input follows magic, version and sizes; the checksum is computed. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static uint8_t file[MAX_BYTES];
	struct index_header header = { 0 };
	size_t fixed = offsetof(struct index_header, base), end;
	autoclose int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct index *index = NULL;
	uint64_t sum;

	if (fd < 0 || size > MAX_BYTES - fixed - INDEX_CHECKSUM_BYTES)
		return 0;
	end = fixed + size;
	header.magic = INDEX_MAGIC;
	header.version = INDEX_VERSION;
	header.header_bytes = sizeof(header);
	header.file_bytes = end + INDEX_CHECKSUM_BYTES;
	memcpy(file, &header, fixed);
	memcpy(file + fixed, bytes, size);
	sum = XXH3_64bits(file, end);
	memcpy(file + end, &sum, sizeof(sum));
	if (io_write_all(fd, file, end + INDEX_CHECKSUM_BYTES) || index_open(fd, &index))
		return 0;
	memcpy(&header, file, MIN(sizeof(header), end));
	ask(index, header.base);
	ask_pages(index, header.base);
	ask_functions(index);
	index_destroy(index);
	return 0;
}
