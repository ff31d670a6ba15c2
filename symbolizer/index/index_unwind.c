/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/index/index_state.h"
#include "symbolizer/index/unwind.h"

/* Returns the entry of page NUMBER (counted from the base's page), or the table's size. */
static size_t find_page(const struct index *index, uint64_t number)
{
	const struct index_unwind_entry *entries = index_table_start(index, INDEX_UNWIND_PAGES);
	size_t count = index_table_count(index, INDEX_UNWIND_PAGES);
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (entries[middle].page < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && entries[low].page == number ? low : count;
}

static uint64_t first_page(const struct index *index)
{
	return index->header.base >> ABI_UNWIND_PAGE_SHIFT;
}

bool index_unwind_page(const struct index *index, uint64_t elf_addr,
	const struct abi_unwind_page **ret_page, size_t *ret_size)
{
	const struct index_unwind_entry *entries = index_table_start(index, INDEX_UNWIND_PAGES);
	const uint32_t *words = index_table_start(index, INDEX_UNWIND_WORDS);
	size_t word_count = index_table_count(index, INDEX_UNWIND_WORDS);
	const struct abi_unwind_page *page;
	size_t entry;

	entry = find_page(index, (elf_addr >> ABI_UNWIND_PAGE_SHIFT) - first_page(index));
	if (entry == index_unwind_page_count(index) || entries[entry].place >= word_count)
		return false;
	page = (const void *)(words + entries[entry].place);
	if (!unwind_page_fits(page, (word_count - entries[entry].place) * sizeof(*words)))
		return false;
	*ret_page = page;
	*ret_size = page->size;
	return true;
}

size_t index_unwind_page_count(const struct index *index)
{
	return index_table_count(index, INDEX_UNWIND_PAGES);
}

size_t index_unwind_bytes(const struct index *index)
{
	return index_table_count(index, INDEX_UNWIND_WORDS) * sizeof(uint32_t);
}

uint64_t index_unwind_page_address(const struct index *index, size_t number)
{
	const struct index_unwind_entry *entries = index_table_start(index, INDEX_UNWIND_PAGES);

	if (number >= index_unwind_page_count(index))
		return 0;
	return (first_page(index) + entries[number].page) << ABI_UNWIND_PAGE_SHIFT;
}

const struct index_unwind *index_unwind_figures(const struct index *index)
{
	return &index->header.unwind;
}
