/* SPDX-License-Identifier: Apache-2.0 */
#include <dwarf.h>
#include <errno.h>

#include "symbolizer/index/index.h"
#include "symbolizer/indexer/go/go.h"

int go_read_names(struct source_build *b)
{
	struct source_range text = { 0 };
	int err = gopclntab_read(b->images->own, b->w, &text);

	if (err)
		return err;
	b->answered = text;
	b->answered_language = DW_LANG_Go;
	writer_source(b->w, INDEX_SOURCE_PCLNTAB);
	return 0;
}

int go_read_facts(struct source_build *b)
{
	struct cursor text = go_build_id(b->images->own);
	struct index_go go = { 0 };
	uint32_t string = 0;
	int err = go_facts_read(b->images->own, &go);

	if (err == -ENOMEM || err == -E2BIG)
		return err;
	if (!err)
		writer_go(b->w, &go);
	if (!cursor_left(&text))
		return 0;
	err = writer_string(b->w, (const char *)text.at, cursor_left(&text), &string);
	if (!err)
		writer_text_build_id(b->w, string);
	return err;
}
