/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How DWARF describes inline chains, and common mistakes in reading them.
 *
 * The entries of a unit form a tree, stored in preorder. A function with code is a
 * DW_TAG_subprogram with addresses. A call inlined into it is a DW_TAG_inlined_subroutine below it,
 * with the addresses of the inlined code; calls inlined into that one are below it in turn, with
 * lexical blocks and the like in between. So the inline chain at an address is the path from the
 * deepest entry that covers it up to the function. The walk keeps one node per level of the tree,
 * makes the node above each inlined call its parent, and passes nodes and ranges to the writer,
 * which finds the deepest one at each address.
 *
 * Neither kind of entry has a name. Both refer to an abstract instance of the function, which may
 * refer to a declaration in a class, and only that has the name (dwarf_names.c).
 *
 * Many symbolizers have these three bugs:
 *
 * 1. References are resolved in the referring unit. With link-time optimization the abstract
 *    instance is in another unit (DW_FORM_ref_addr): its offset counts from the start of the
 *    section, and its abbreviations, string and address bases are those of the unit it is in.
 *    Otherwise a chain gets no names, or the names of unrelated entries.
 *
 * 2. The call site is off by one. DW_AT_call_file and DW_AT_call_line of an inlined call are a
 *    location in its *parent*: the innermost frame's line comes from the line table, each outer
 *    frame's from the entry of the frame inside it. A node therefore has the location of its
 *    parent's frame; the reader of the index shifts them.
 *
 * 3. The tree is assumed to be tidy. But children are not sorted by address, their ranges may
 *    exceed their parent's, a function's cold part is far from the rest, and entries without ranges
 *    (an inlined call whose code was optimized away) may have children with ranges. Searching for
 *    the one child that contains the address, or using the span from the lowest to the highest
 *    address, loses the chain or attributes it to a neighbour. Here all entries are walked and each
 *    range counts by itself.
 *
 * A function that the linker discarded keeps its entries, with invalid addresses (0, 1, -1, -2);
 * below it, offsets from such a base may be in real code. So everything below a function is ignored
 * unless one of its own ranges starts in code.
 */
#include "symbolizer/indexer/dwarf/dwarf_walk.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "symbolizer/indexer/dwarf/dwarf_ranges.h"

enum {
	MAX_DEPTH = 512,
	MAX_RANGES = 1 << 16, /* per entry */
};

struct walk {
	struct dwarf_walker *walker;
	struct dwarf_unit *u;
	const struct dwarf_abbrevs *table;
	struct cursor c;
	uint32_t number;
	unsigned int depth;
	/* Per level: the parent node of inlined calls; WRITER_NONE outside of live functions. */
	uint32_t nodes[MAX_DEPTH];
};

void dwarf_walker_deinit(struct dwarf_walker *walker)
{
	free(walker->ranges);
}

static int keep_range(void *context, uint64_t low, uint64_t high)
{
	struct dwarf_walker *walker = context;

	if (walker->range_count == MAX_RANGES)
		return -EBADMSG;
	if (array_reserve(
		    walker->ranges, walker->range_capacity, walker->range_count + 1, MAX_RANGES))
		return -ENOMEM;
	walker->ranges[walker->range_count++] = (struct dwarf_range){ low, high };
	return 0;
}

static int collect_ranges(struct walk *walk, const struct dwarf_die *die)
{
	struct dwarf_walker *walker = walk->walker;

	walker->range_count = 0;
	return dwarf_ranges_each(walker->d, walk->u, die, keep_range, walker);
}

static bool any_in_code(const struct dwarf_walker *walker)
{
	for (size_t i = 0; i < walker->range_count; i++)
		if (dwarf_is_code(walker->d, walker->ranges[i].low))
			return true;
	return false;
}

static int write_ranges(const struct dwarf_walker *walker, uint32_t node)
{
	int err = 0;

	for (size_t i = 0; i < walker->range_count && !err; i++)
		err = writer_range(walker->w, node, walker->ranges[i].low, walker->ranges[i].high);
	return err;
}

static int write_node(struct walk *walk, const struct dwarf_die *die, uint64_t offset,
	struct writer_node *node, uint32_t *ret_node)
{
	struct dwarf_walker *walker = walk->walker;
	struct dwarf_function function;
	int err = dwarf_names_get(walker->names, walk->u, offset, die, &function);

	if (err)
		return err;
	node->linkage = function.linkage;
	node->name = function.name;
	node->start_line = function.start_line;
	node->unit = walk->number;
	err = writer_node(walker->w, node, ret_node);
	return err ? err : write_ranges(walker, *ret_node);
}

static int walk_function(
	struct walk *walk, const struct dwarf_die *die, uint64_t offset, uint32_t *ret_node)
{
	struct writer_node node = { .parent = WRITER_NONE };
	int err = collect_ranges(walk, die);

	*ret_node = WRITER_NONE;
	if (err || !any_in_code(walk->walker))
		return err;
	return write_node(walk, die, offset, &node, ret_node);
}

static int walk_inlined(
	struct walk *walk, const struct dwarf_die *die, uint64_t offset, uint32_t *ret_node)
{
	struct writer_node node = {
		.parent = *ret_node,
		.call_line = die->call_line,
		.call_column = die->call_column,
	};
	int err;

	if (node.parent == WRITER_NONE)
		return 0;
	err = collect_ranges(walk, die);
	if (!err)
		err = dwarf_lines_path(
			walk->walker->lines, walk->walker->w, die->call_file, &node.call_file);
	return err ? err : write_node(walk, die, offset, &node, ret_node);
}

/*
 * Whether no code can be below the entry: an array or function type, or, in languages without
 * nested functions and methods, an abstract function or a structure.
 */
static bool is_barren(const struct walk *walk, const struct dwarf_abbrev *a)
{
	if (a->role == DWARF_ROLE_CODELESS)
		return true;
	if (a->role != DWARF_ROLE_TYPE && (a->role != DWARF_ROLE_FUNCTION || a->has_code))
		return false;
	return dwarf_unit_is_flat(walk->u);
}

/* Jumps to the sibling of the entry whose code was read; false if there is no usable one. */
static bool jump_to_sibling(struct walk *walk, const struct dwarf_abbrev *a)
{
	struct cursor c = walk->c;
	struct dwarf_value sibling;

	if (!a->sibling_form)
		return false;
	cursor_skip(&c, a->sibling_at);
	dwarf_form_read(&c, &walk->u->format, a->sibling_form, 0, &sibling);
	if (c.bad || sibling.kind != DWARF_REFERENCE || sibling.number < cursor_offset(&c))
		return false;
	return cursor_seek(&walk->c, sibling.number);
}

static int dwarf_walk_enter(struct walk *walk, uint32_t node)
{
	if (walk->depth + 1 == MAX_DEPTH)
		return -EBADMSG;
	walk->nodes[++walk->depth] = node;
	return 0;
}

/* Reads a function with code, or an inlined call. */
static int walk_code(
	struct walk *walk, const struct dwarf_abbrev *a, uint64_t offset, uint32_t *ret_node)
{
	struct dwarf_die die;

	if (!work_spend(walk->walker->d->work, a->attribute_count))
		return -EBADMSG;
	dwarf_die_read(&walk->c, walk->u, walk->table, a, &die);
	if (walk->c.bad)
		return -EBADMSG;
	if (a->role == DWARF_ROLE_INLINED)
		return walk_inlined(walk, &die, offset, ret_node);
	return walk_function(walk, &die, offset, ret_node);
}

/* Reads one entry; its children come next. -EBADMSG ends the unit. */
static int walk_entry(struct walk *walk, uint64_t offset, uint64_t code)
{
	const struct dwarf_abbrev *a = dwarf_abbrev_find(walk->table, code);
	uint32_t node = walk->nodes[walk->depth];
	int err = 0;

	if (!a)
		return -EBADMSG;
	if (a->children && is_barren(walk, a) && jump_to_sibling(walk, a))
		return 0;
	if (a->role == DWARF_ROLE_INLINED || (a->role == DWARF_ROLE_FUNCTION && a->has_code)) {
		err = walk_code(walk, a, offset, &node);
	} else {
		dwarf_abbrev_skip(walk->table, a, &walk->u->format, &walk->c);
		if (a->role == DWARF_ROLE_FUNCTION)
			node = WRITER_NONE; /* abstract: calls inlined into it have no code here */
	}
	return err || !a->children ? err : dwarf_walk_enter(walk, node);
}

static int walk_entries(struct walk *walk)
{
	int err = 0;

	while (!err && cursor_left(&walk->c)) {
		uint64_t offset = cursor_offset(&walk->c);
		uint64_t code = dwarf_uleb(&walk->c);

		if (code)
			err = walk_entry(walk, offset, code);
		else if (walk->depth)
			walk->depth--;
		if (!walk->depth)
			break;
	}
	return !err && walk->c.bad ? -EBADMSG : err;
}

int dwarf_walk(struct dwarf_walker *walker, struct dwarf_unit *u, uint32_t number)
{
	struct dwarf *d = walker->d;
	struct walk walk = { .walker = walker, .u = u, .number = number, .nodes = { WRITER_NONE } };
	int err = dwarf_abbrevs_get(
		&d->abbrevs, &d->sections.abbrev, u->abbrev_off, &u->format, &walk.table);

	if (err)
		return err;
	d->abbrevs.pinned = walk.table;
	walk.c = dwarf_unit_cursor(d, u, u->root);
	err = walk_entries(&walk);
	d->abbrevs.pinned = NULL;
	return err;
}
