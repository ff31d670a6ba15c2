/* SPDX-License-Identifier: Apache-2.0 */
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "symbolizer/index/index.h"
#include "symbolizer/indexer/go/go.h"
#include "symbolizer/indexer/go/go_stack_check.h"
#include "symbolizer/indexer/go/go_unwind.h"
#include "symbolizer/indexer/go/go_version.h"
#include "symbolizer/indexer/runtime_source.h"

static int go_read_names(struct source_build *b)
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

void go_write_facts(struct index_writer *w, const struct index_go *go)
{
	uint32_t facts[INDEX_RUNTIME_WORDS];

	memcpy(facts, go, sizeof(facts));
	writer_runtime(w, INDEX_RUNTIME_GO, facts);
}

static int go_read_facts(struct source_build *b)
{
	struct cursor text = go_build_id(b->images->own);
	struct index_go go = { 0 };
	uint32_t string = 0;
	int err = go_facts_read(b->images->own, &go);

	if (err == -ENOMEM || err == -E2BIG)
		return err;
	if (!err)
		go_write_facts(b->w, &go);
	if (!cursor_left(&text))
		return 0;
	err = writer_string(b->w, (const char *)text.at, cursor_left(&text), &string);
	if (!err)
		writer_text_build_id(b->w, string);
	return err;
}

static bool go_toolchain(struct elf_image *image, char text[TOOLCHAIN_BYTES])
{
	struct go_version go;

	if (go_version_read(image, &go))
		return false;
	snprintf(text, TOOLCHAIN_BYTES, "Go%s%s", go.text[0] ? " " : "", go.text);
	return true;
}

const struct runtime_source runtime_source_go = {
	.read_names = go_read_names,
	.open_unwind = go_open_unwind,
	.read_facts = go_read_facts,
	.stack_check = go_stack_check,
	.toolchain = go_toolchain,
};
