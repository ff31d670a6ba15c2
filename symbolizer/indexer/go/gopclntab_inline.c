/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inline tree of one function.
 *
 * pcdata table 2 maps each address to the number of the innermost inlined call there, -1 outside of
 * inlined calls. A tree entry has the called function's name and parentPc, an instruction "whose
 * source position is the call site": file and line there are where the parent calls it, and the
 * pcdata there is the parent's number, -1 if the parent is the function itself. The runtime finds
 * chains this way in all versions (before 1.20 entries also have parent, file and line, which
 * nobody reads). The tree's length is not stored: it follows from the largest number in use.
 *
 * If go.func.* came from the wrong word of the module data, the tree would be arbitrary bytes. So
 * an entry's name must be at the start of a string, its parentPc must be in the function, and its
 * chain must reach the function in a bounded number of steps. Otherwise the function has only its
 * own name, and no lines where calls are inlined, because those lines are not its own.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "symbolizer/indexer/go/gopclntab.h"

enum {
	MAX_INLINES = 1 << 20,
	MAX_DEPTH = 200, /* of a chain; below INDEX_MAX_FRAMES */
	ENTRY_1_16 = 20,
	ENTRY_1_20 = 16,
};

/* Processing state of an entry. */
enum progress {
	UNSEEN,
	READ, /* all but `node` is filled in */
	WRITTEN,
};

struct gopclntab_inline {
	enum progress progress;
	uint32_t name; /* offset of the name */
	uint32_t parent_pc;
	uint32_t start_line;
	int32_t parent; /* -1: the function itself */
	uint32_t node;
};

/* Parses entry NUMBER of the tree of a function of SIZE bytes, except its parent. */
static int parse_entry(const struct gopclntab *table, uint64_t tree, uint32_t size, int32_t number,
	struct gopclntab_inline *ret_entry)
{
	bool old = table->format != GOPCLNTAB_1_20;
	uint64_t bytes = old ? ENTRY_1_16 : ENTRY_1_20;
	struct cursor c = elf_image_at(table->image, tree + (uint64_t)number * bytes, bytes);
	struct gopclntab_inline entry = { .parent = -1 };

	cursor_skip(&c, old ? 12 : 4);
	entry.name = cursor_u32(&c);
	entry.parent_pc = cursor_u32(&c);
	entry.start_line = old ? 0 : cursor_u32(&c);
	if (c.bad || entry.parent_pc >= size || !gopclntab_name(table, entry.name))
		return -EBADMSG;
	*ret_entry = entry;
	return 0;
}

bool gopclntab_inline_plausible(
	const struct gopclntab *table, const struct gopclntab_function *function)
{
	struct gopclntab_inline first;

	return !parse_entry(table, function->inline_tree,
		(uint32_t)(function->next - function->entry), 0, &first);
}

static int gopclntab_inline_read_entry(struct gopclntab_reader *r, int32_t number)
{
	struct gopclntab_inline *entry = &r->inlines[number];
	int error = parse_entry(r->table, r->function.inline_tree, r->size, number, entry);

	if (error)
		return error;
	if (!work_spend(writer_work(r->writer),
		    ENTRY_1_20 + strlen(gopclntab_name(r->table, entry->name))))
		return -EBADMSG;
	entry->parent = gopclntab_runs_value(&r->inlined, entry->parent_pc);
	entry->progress = READ;
	return 0;
}

/* Reads each entry that is in the pcdata table, which also has the numbers of all parents. */
static int gopclntab_inline_read_entries(struct gopclntab_reader *r)
{
	int32_t largest = -1;
	int error;

	for (size_t i = 0; i < r->inlined.count; i++)
		if (r->inlined.items[i].value > largest)
			largest = r->inlined.items[i].value;
	if (largest >= MAX_INLINES)
		return -EBADMSG;
	if (!work_spend(writer_work(r->writer), (uint64_t)largest + 1))
		return -EBADMSG;
	error = array_reserve(r->inlines, r->inline_capacity, (size_t)largest + 1, MAX_INLINES);
	if (error)
		return error;
	for (int32_t i = 0; i <= largest; i++)
		r->inlines[i].progress = UNSEEN;
	for (size_t i = 0; i < r->inlined.count; i++) {
		int32_t number = r->inlined.items[i].value;

		if (number < 0 || r->inlines[number].progress != UNSEEN)
			continue;
		error = gopclntab_inline_read_entry(r, number);
		if (error)
			return error;
	}
	return 0;
}

/* Each chain must end at the function; cycles do not. */
static int check_chains(const struct gopclntab_reader *r)
{
	for (size_t i = 0; i < r->inlined.count; i++) {
		int32_t number = r->inlined.items[i].value;
		unsigned int depth = 0;

		while (number >= 0 && depth++ < MAX_DEPTH)
			number = r->inlines[number].parent;
		if (number >= 0 || !work_spend(writer_work(r->writer), depth))
			return -EBADMSG;
	}
	return 0;
}

/* Returns the outermost entry of NUMBER's chain without a node; -1 if all have one. */
static int32_t outermost_unwritten(const struct gopclntab_reader *r, int32_t number)
{
	int32_t found = -1;

	for (; number >= 0 && r->inlines[number].progress == READ;
		number = r->inlines[number].parent)
		found = number;
	return found;
}

static int write_entry(struct gopclntab_reader *r, struct gopclntab_inline *entry, uint32_t root)
{
	struct writer_node node = {
		.parent = entry->parent < 0 ? root : r->inlines[entry->parent].node,
		.start_line = entry->start_line,
		.unit = GOPCLNTAB_UNIT,
	};
	int error;

	error = gopclntab_reader_name(r, entry->name, &node);
	if (!error)
		error = gopclntab_reader_line(
			r, entry->parent_pc, &node.call_file, &node.call_line);
	if (!error)
		error = writer_node(r->writer, &node, &entry->node);
	if (!error)
		entry->progress = WRITTEN;
	return error;
}

int gopclntab_inline_read(struct gopclntab_reader *r)
{
	int error;

	if (!r->function.pcinline)
		return 0;
	if (!r->inlined.count || !r->function.inline_tree)
		return -EBADMSG;
	error = gopclntab_inline_read_entries(r);
	return error ? error : check_chains(r);
}

int gopclntab_inline_write(struct gopclntab_reader *r, uint32_t root)
{
	uint32_t low = 0;
	int error = 0;

	for (size_t i = 0; !error && i < r->inlined.count; i++) {
		const struct gopclntab_run *run = &r->inlined.items[i];
		int32_t next;

		while (!error && (next = outermost_unwritten(r, run->value)) >= 0)
			error = write_entry(r, &r->inlines[next], root);
		if (!error && run->value >= 0)
			error = writer_range(r->writer, r->inlines[run->value].node,
				r->function.entry + low, r->function.entry + run->end);
		low = run->end;
	}
	return error;
}
