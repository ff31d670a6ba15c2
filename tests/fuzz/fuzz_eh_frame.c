/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a byte of flags (1: aarch64, 2: .debug_frame, 4: ends at its terminator), then a
 * section. The resulting pages must be valid, in order, and inside the code.
 */
#include <elf.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/cfi/cfi.h"
#include "symbolizer/indexer/writer/writer_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LOW = 0x1000, HIGH = 0x200000, SECTION = 0x10000, FAR = 0x40000000 };

static const uint8_t *page_at(const struct index_writer *w, size_t number, size_t *ret_size)
{
	size_t place = w->unwind_pages[number].place;

	*ret_size = (w->unwind_word_count - place) * sizeof(*w->unwind_words);
	return (const uint8_t *)(w->unwind_words + place);
}

static void check_page(const struct index_writer *w, size_t number)
{
	struct abi_unwind_rule rule;
	const void *page;
	size_t size;

	page = page_at(w, number, &size);
	if (!unwind_page_check(page, size))
		abort();
	for (uint32_t offset = 0; offset < 1 << ABI_UNWIND_PAGE_SHIFT; offset += 997)
		if (!unwind_rule_at(page, size, offset, &rule))
			abort();
}

/* The input as a page: lookups read nothing outside of it. */
static void ask_any_page(const uint8_t *data, size_t size)
{
	autofree uint8_t *copy = malloc(size + 1);
	struct abi_unwind_rule rule;

	if (!copy)
		abort();
	memcpy(copy, data, size);
	unwind_page_check((const void *)copy, size);
	for (uint32_t offset = 0; offset < 1 << ABI_UNWIND_PAGE_SHIFT; offset += 4093)
		unwind_rule_at((const void *)copy, size, offset, &rule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct source_range skip = { LOW + 0x4000, LOW + 0x5000 };
	struct index_writer *w = index_writer_create();
	struct cfi_section section = { .text = LOW, .data = SECTION };

	if (!w || !size) {
		index_writer_destroy(w);
		return 0;
	}
	section.machine = *data & 1 ? EM_AARCH64 : EM_X86_64;
	section.eh = !(*data & 2);
	section.ends_at_zero = *data & 4;
	section.bytes = cursor_over(data + 1, size - 1);
	section.address = section.eh ? SECTION : 0;
	if (writer_code(w, LOW, HIGH - LOW) || writer_code(w, FAR, HIGH) ||
		unwind_read_sections(&section, 1, LOW + (size & 0xff), &skip, w))
		abort();
	for (size_t i = 0; i < w->unwind_page_count; i++)
		check_page(w, i);
	index_writer_destroy(w);
	ask_any_page(data, size);
	return 0;
}
