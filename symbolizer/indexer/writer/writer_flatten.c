/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds one function for each address, by two rankings:
 *
 * Functions: among overlapping ones (identical code folding gives one piece of code to functions of
 * many units) the first one given wins; inside it the deepest node. Any function wins over any
 * symbol.
 *
 * Symbols: the innermost, which is the one that starts last, so that after an inner symbol's end
 * the outer one has the code again. Among symbols with one start the higher rank wins, then the
 * larger, then the later one. A symbol without a size may end anywhere, so it only gets addresses
 * that no other symbol has.
 *
 * Extents: what no function and no symbol covers, again the innermost.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/writer/writer_state.h"

static const uint64_t SYMBOL_RANK = UINT64_C(1) << 63;
static const uint64_t SIZELESS_RANK = UINT64_C(1) << 62;
static const uint64_t EXTENT_RANK = UINT64_MAX - UINT32_MAX;

/* Ascending by address; the best one of an address last. */
static int by_weight(const void *a, const void *b)
{
	const struct build_symbol *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->high != y->high)
		return x->high < y->high ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

struct node_ranking {
	const struct build_node *nodes;
	const struct build_symbol *symbols;
	size_t first_symbol; /* nodes from here on represent symbols, in order */
	size_t node_count; /* those after them are extents */
};

static uint64_t rank_node(const void *context, uint32_t id)
{
	const struct node_ranking *r = context;

	if (id >= r->node_count)
		return EXTENT_RANK | (UINT32_MAX - id);
	if (id < r->first_symbol)
		return (uint64_t)r->nodes[id].root << 16 | (UINT16_MAX - r->nodes[id].depth);
	return SYMBOL_RANK | (r->symbols[id - r->first_symbol].high ? 0 : SIZELESS_RANK) |
	       (r->node_count - id);
}

/* Adds each symbol as a function without a unit. */
static int add_symbol_nodes(struct index_writer *w)
{
	size_t ranges = w->range_count + w->symbol_count, next = 0;
	size_t nodes = w->node_count + w->symbol_count;
	int err = array_reserve(w->nodes, w->node_capacity, nodes, WRITER_MAX_NODES);

	if (!err)
		err = array_reserve(w->ranges, w->range_capacity, ranges, SIZE_MAX / 16);
	for (size_t i = 0; i < w->symbol_count && !err; i++) {
		const struct build_symbol *s = &w->symbols[i];
		uint32_t id = (uint32_t)w->node_count++, high = s->high;

		while (next < w->symbol_count && w->symbols[next].low <= s->low)
			next++;
		if (!high)
			high = writer_extent_end(w, s);
		if (!s->high && next < w->symbol_count)
			high = MIN(high, w->symbols[next].low);
		w->nodes[id] = (struct build_node){
			.parent = WRITER_NONE, .linkage = s->name, .root = id, .unit = WRITER_NONE
		};
		w->ranges[w->range_count++] = (struct interval){
			.low = writer_extent_begin(w, s), .high = high, .id = id
		};
	}
	return err;
}

int writer_link_symbols(struct index_writer *w)
{
	if (w->symbol_count)
		qsort(w->symbols, w->symbol_count, sizeof(*w->symbols), by_weight);
	return writer_link_names(w);
}

int writer_flatten(struct index_writer *w)
{
	struct node_ranking ranking = { .first_symbol = w->node_count };
	int err = writer_link_symbols(w);

	writer_extents_sort(w);
	if (!err)
		err = add_symbol_nodes(w);
	if (!err)
		err = writer_extents_add_ranges(w, (uint32_t)w->node_count);
	if (err)
		return err;
	ranking.nodes = w->nodes;
	ranking.symbols = w->symbols;
	ranking.node_count = w->node_count;
	err = spans_flatten(w->ranges, w->range_count, rank_node, &ranking, &w->spans);
	writer_extents_settle(w, (uint32_t)w->node_count);
	free(take(w->ranges));
	free(take(w->symbols));
	writer_extents_free(w);
	w->range_count = w->range_capacity = w->symbol_count = w->symbol_capacity = 0;
	return err;
}
