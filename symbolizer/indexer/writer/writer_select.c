/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/writer/writer_select.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "symbolizer/indexer/demangle.h"

enum { MAX_DEMANGLED_BYTES = 1 << 20 };

void selection_deinit(struct selection *s)
{
	free(s->node_numbers);
	free(s->display);
	free(s->string_offsets);
	free(s->strings);
}

static int select_nodes(struct index_writer *w, struct selection *s)
{
	s->node_numbers = calloc(w->node_count + 1, sizeof(*s->node_numbers));
	if (!s->node_numbers)
		return -ENOMEM;
	for (size_t i = 0; i < w->spans.count; i++)
		if (w->spans.items[i].id < w->node_count)
			s->node_numbers[w->spans.items[i].id] = 1;
	/* Parents have lower numbers than their children. */
	for (size_t i = w->node_count; i-- > 0;)
		if (s->node_numbers[i] && w->nodes[i].parent != WRITER_NONE)
			s->node_numbers[w->nodes[i].parent] = 1;
	for (size_t i = 0; i < w->node_count; i++)
		s->node_numbers[i] = s->node_numbers[i] ? s->node_count++ : UINT32_MAX;
	return 0;
}

/* demangle() or demangle_clone() */
typedef int demangler(const char *linkage, struct buffer *out);

/* A name that is too long to demangle stays mangled. */
static int make_display(struct index_writer *w, demangler *make, uint32_t linkage,
	struct buffer *text, uint32_t *ret_string)
{
	int err;

	if (!work_spend(writer_work(w), intern_size(&w->strings, linkage))) {
		*ret_string = linkage;
		return 0;
	}
	text->size = 0;
	text->error = 0;
	err = make(intern_text(&w->strings, linkage), text);
	if (err == -ENOMEM)
		return err;
	/* Few bytes can stand for long names. */
	if (err || !text->size || !work_spend(writer_work(w), text->size)) {
		*ret_string = linkage;
		return 0;
	}
	return intern_bytes(&w->strings, text->bytes, text->size, ret_string);
}

static int name_nodes(struct index_writer *w, struct selection *s)
{
	struct buffer text;
	int err = 0;

	s->display_count = w->strings.count;
	s->display = calloc(s->display_count + 1, sizeof(*s->display));
	if (!s->display)
		return -ENOMEM;
	buffer_init(&text, MAX_DEMANGLED_BYTES);
	for (size_t i = 0; i < w->node_count && !err; i++) {
		struct build_node *node = &w->nodes[i];

		if (s->node_numbers[i] == UINT32_MAX || node->name ||
			node->linkage >= s->display_count)
			continue;
		if (!s->display[node->linkage])
			err = make_display(
				w, demangle, node->linkage, &text, &s->display[node->linkage]);
		node->name = s->display[node->linkage];
	}
	buffer_deinit(&text);
	return err;
}

/* A clone is another function than the one that it was made from, and keeps its suffix. */
static int name_functions(struct index_writer *w)
{
	struct buffer text;
	int err = 0;

	buffer_init(&text, MAX_DEMANGLED_BYTES);
	for (size_t i = 0; i < w->function_count && !err; i++) {
		struct index_function_entry *f = &w->functions[i];

		if (!f->name)
			err = make_display(w, demangle_clone, f->linkage, &text, &f->name);
	}
	buffer_deinit(&text);
	return err;
}

static int select_string(struct index_writer *w, struct selection *s, uint32_t string)
{
	int err;

	if (!string || string >= w->strings.count || s->string_offsets[string])
		return 0;
	err = array_reserve(s->strings, s->string_capacity, s->string_count + 1, UINT32_MAX);
	if (err)
		return err;
	s->strings[s->string_count++] = string;
	s->string_offsets[string] = (uint32_t)s->string_bytes;
	s->string_bytes += intern_size(&w->strings, string) + 1;
	return s->string_bytes > UINT32_MAX ? -E2BIG : 0;
}

/* Names first, then files: strings that one lookup reads are adjacent. */
static int select_strings(struct index_writer *w, struct selection *s)
{
	int err = 0;

	s->string_offsets = calloc(w->strings.count + 1, sizeof(*s->string_offsets));
	if (!s->string_offsets)
		return -ENOMEM;
	s->string_bytes = 1; /* "" */
	for (size_t i = 0; i < w->node_count && !err; i++) {
		if (s->node_numbers[i] == UINT32_MAX)
			continue;
		err = select_string(w, s, w->nodes[i].name);
		if (!err)
			err = select_string(w, s, w->nodes[i].linkage);
		if (!err)
			err = select_string(w, s, w->nodes[i].call_file);
	}
	for (size_t i = 0; i < w->function_count && !err; i++) {
		err = select_string(w, s, w->functions[i].name);
		if (!err)
			err = select_string(w, s, w->functions[i].linkage);
	}
	for (size_t i = 0; i < w->file_count && !err; i++)
		err = select_string(w, s, w->files[i]);
	for (size_t i = 0; i < w->wanted_count && !err; i++)
		err = select_string(w, s, w->wanted[i]);
	if (!err)
		err = select_string(w, s, w->debug.link);
	if (!err)
		err = select_string(w, s, w->debug.alternate);
	if (!err)
		err = select_string(w, s, w->text_build_id);
	return err ? err : select_string(w, s, w->toolchain);
}

int selection_init(struct index_writer *w, struct selection *ret_selection)
{
	int err;

	*ret_selection = (struct selection){ 0 };
	err = select_nodes(w, ret_selection);
	if (!err)
		err = name_nodes(w, ret_selection);
	if (!err)
		err = name_functions(w);
	return err ? err : select_strings(w, ret_selection);
}
