/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/writer/writer.h"
#include "symbolizer/indexer/writer/writer_state.h"

enum {
	MAX_PAGES = 1 << (32 - ABI_UNWIND_PAGE_SHIFT), /* all addresses of an index */
	MAX_WORDS = 1 << 28,
	WORD_BYTES = 4,
};

int writer_unwind_page(struct index_writer *w, uint64_t address, const void *bytes, uint32_t size)
{
	size_t words = size / WORD_BYTES;
	uint64_t page;
	int err = writer_close_code(w);

	if (err)
		return err;
	page = (address >> ABI_UNWIND_PAGE_SHIFT) - (w->base >> ABI_UNWIND_PAGE_SHIFT);
	if (page > MAX_PAGES || size % WORD_BYTES)
		return -EBADMSG;
	if (w->unwind_page_count && page <= w->unwind_pages[w->unwind_page_count - 1].page)
		return -EBADMSG;
	err = array_reserve(
		w->unwind_pages, w->unwind_page_capacity, w->unwind_page_count + 1, MAX_PAGES + 1);
	if (!err)
		err = array_reserve(w->unwind_words, w->unwind_word_capacity,
			w->unwind_word_count + words, MAX_WORDS);
	if (err)
		return err;
	w->unwind_pages[w->unwind_page_count++] = (struct index_unwind_entry){
		.page = (uint32_t)page,
		.place = (uint32_t)w->unwind_word_count,
	};
	memcpy(w->unwind_words + w->unwind_word_count, bytes, size);
	w->unwind_word_count += words;
	return 0;
}

void writer_unwind(struct index_writer *w, const struct index_unwind *unwind)
{
	w->unwind = *unwind;
}
