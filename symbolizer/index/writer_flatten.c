/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One answer for each address. Three rankings decide it:
 *
 * Functions: where several overlap (identical code folding gives one stretch of code to functions
 * of many units), the first one given has it; inside it the deepest node. Any function comes before
 * any symbol.
 *
 * Symbols: the innermost, that is the one that starts last, so that after an inner symbol's end the
 * outer one has the code again. Of those with one start the higher rank, then the larger, then the
 * later one. A symbol without a size says nothing about what lies behind it, so it only gets what
 * no other has.
 *
 * Lines: where a function is known, only sequences of its own unit; elsewhere the first sequence.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/index/writer_state.h"

static const uint64_t SYMBOL_RANK = UINT64_C(1) << 63;
static const uint64_t SIZELESS_RANK = UINT64_C(1) << 62;

/* Ascending by address; of one address the best last. */
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
	size_t first_symbol; /* nodes from here on stand for symbols, in their order */
	size_t node_count;
};

static uint64_t rank_node(const void *context, uint32_t id)
{
	const struct node_ranking *r = context;

	if (id < r->first_symbol)
		return (uint64_t)r->nodes[id].root << 16 | (UINT16_MAX - r->nodes[id].depth);
	return SYMBOL_RANK | (r->symbols[id - r->first_symbol].high ? 0 : SIZELESS_RANK) |
	       (r->node_count - id);
}

/* A symbol takes part like a function of no unit. */
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
			high = next < w->symbol_count ? MIN(w->symbols[next].low, s->limit)
						      : s->limit;
		w->nodes[id] = (struct build_node){
			.parent = WRITER_NONE, .linkage = s->name, .root = id, .unit = WRITER_NONE
		};
		w->ranges[w->range_count++] =
			(struct interval){ .low = s->low, .high = high, .id = id };
	}
	return err;
}

static int flatten_nodes(struct index_writer *w)
{
	struct node_ranking ranking = { .first_symbol = w->node_count };
	int err;

	if (w->symbol_count)
		qsort(w->symbols, w->symbol_count, sizeof(*w->symbols), by_weight);
	err = writer_link_names(w);
	if (!err)
		err = add_symbol_nodes(w);
	if (err)
		return err;
	ranking.nodes = w->nodes;
	ranking.symbols = w->symbols;
	ranking.node_count = w->node_count;
	err = spans_flatten(w->ranges, w->range_count, rank_node, &ranking, &w->spans);
	free(take(w->ranges));
	free(take(w->symbols));
	w->range_count = w->range_capacity = w->symbol_count = w->symbol_capacity = 0;
	return err;
}

/* The spans of one unit's sequences, a stretch of line_spans.spans. */
struct unit_spans {
	uint32_t unit; /* WRITER_NONE: of all sequences together */
	size_t first, count;
};

struct line_spans {
	struct unit_spans *units; /* ascending */
	size_t count, capacity;
	struct spans spans;
	const struct unit_spans *last;
};

static uint64_t rank_sequence(const void *context, uint32_t id)
{
	(void)context;
	return id;
}

static int add_unit(struct line_spans *lines, uint32_t unit, struct interval *items, size_t count)
{
	struct spans spans = { 0 };
	size_t first = lines->spans.count;
	int err = array_reserve(lines->units, lines->capacity, lines->count + 1, SIZE_MAX / 64);

	if (!err)
		err = spans_flatten(items, count, rank_sequence, NULL, &spans);
	if (!err)
		err = array_reserve(lines->spans.items, lines->spans.capacity, first + spans.count,
			SIZE_MAX / 64);
	if (!err && spans.count)
		memcpy(&lines->spans.items[first], spans.items, spans.count * sizeof(*spans.items));
	if (!err) {
		lines->spans.count += spans.count;
		lines->units[lines->count++] = (struct unit_spans){ unit, first, spans.count };
	}
	spans_deinit(&spans);
	return err;
}

static int by_unit(const void *a, const void *b)
{
	const struct build_sequence *x = a, *y = b;

	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->first_row < y->first_row ? -1 : x->first_row > y->first_row;
}

static int flatten_sequences(
	const struct index_writer *w, struct interval *items, struct line_spans *lines)
{
	size_t count = w->sequence_count, first = 0;
	int err = 0;

	if (count)
		qsort(w->sequences, count, sizeof(*w->sequences), by_unit);
	for (size_t i = 0; i < count; i++)
		items[i] =
			(struct interval){ w->sequences[i].low, w->sequences[i].high, (uint32_t)i };
	while (first < count && !err) {
		uint32_t unit = w->sequences[first].unit;
		size_t end = first;

		while (end < count && w->sequences[end].unit == unit)
			end++;
		err = add_unit(lines, unit, &items[first], end - first);
		first = end;
	}
	return err ? err : add_unit(lines, WRITER_NONE, items, count);
}

static const struct unit_spans *find_unit(struct line_spans *lines, uint32_t unit)
{
	size_t low = 0, high = lines->count;

	if (lines->last && lines->last->unit == unit)
		return lines->last;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (lines->units[middle].unit < unit)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == lines->count || lines->units[low].unit != unit)
		return NULL;
	return lines->last = &lines->units[low];
}

/* The last span of UNIT at or below ADDRESS, else the first; and the end of the unit's spans. */
static const struct span *find_lines(
	struct line_spans *lines, uint32_t unit, uint32_t address, const struct span **ret_end)
{
	const struct unit_spans *u = find_unit(lines, unit);
	const struct span *spans = lines->spans.items;
	size_t low = 0, high = u ? u->count : 0;

	if (!high)
		return NULL;
	spans += u->first;
	*ret_end = spans + high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return &spans[low ? low - 1 : 0];
}

static int emit_row(struct build_rows *rows, uint32_t address, struct index_row row)
{
	struct build_row *last = rows->count ? &rows->items[rows->count - 1] : NULL;
	int err;

	if (last && last->row.line == row.line && last->row.place == row.place)
		return 0;
	if (last && last->address == address) {
		last->row = row;
		return 0;
	}
	err = array_reserve(rows->items, rows->capacity, rows->count + 1, WRITER_MAX_ROWS);
	if (err)
		return err;
	rows->items[rows->count++] = (struct build_row){ .address = address, .row = row };
	return 0;
}

/* The rows of one sequence in [LOW, HIGH). */
static int emit_sequence(struct index_writer *w, uint32_t number, uint32_t low, uint32_t high)
{
	const struct build_sequence *s = &w->sequences[number];
	const struct build_row *rows = &w->rows.items[s->first_row];
	size_t first = 0, end = s->row_count;
	int err;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (rows[middle].address <= low)
			first = middle + 1;
		else
			end = middle;
	}
	err = first ? emit_row(&w->flat_rows, low, rows[first - 1].row) : 0;
	for (; first < s->row_count && rows[first].address < high && !err; first++)
		err = emit_row(&w->flat_rows, rows[first].address, rows[first].row);
	return err;
}

/* The rows of [LOW, HIGH), where all code belongs to functions of UNIT. */
static int emit_stretch(struct index_writer *w, struct line_spans *lines, uint32_t unit,
	uint32_t low, uint32_t high)
{
	const struct span *end = NULL;
	const struct span *span = find_lines(lines, unit, low, &end);
	int err = 0;

	if (!span || span->address > low)
		err = emit_row(&w->flat_rows, low, (struct index_row){ 0 });
	for (; span && span != end && span->address < high && !err; span++) {
		uint32_t from = MAX(span->address, low);
		uint32_t to = span + 1 == end ? high : MIN(span[1].address, high);

		if (span->id == UINT32_MAX)
			err = emit_row(&w->flat_rows, from, (struct index_row){ 0 });
		else
			err = emit_sequence(w, span->id, from, to);
	}
	return err;
}

static uint32_t span_unit(const struct index_writer *w, size_t span)
{
	uint32_t id = w->spans.items[span].id;

	return id == UINT32_MAX ? WRITER_NONE : w->nodes[w->nodes[id].root].unit;
}

static int flatten_rows(struct index_writer *w, struct line_spans *lines)
{
	uint32_t low = 0, unit = WRITER_NONE;
	int err = 0;

	for (size_t i = 0; i < w->spans.count && !err; i++) {
		uint32_t next = span_unit(w, i);

		if (next == unit)
			continue;
		if (w->spans.items[i].address > low)
			err = emit_stretch(w, lines, unit, low, w->spans.items[i].address);
		low = w->spans.items[i].address;
		unit = next;
	}
	return err ? err : emit_stretch(w, lines, unit, low, UINT32_MAX);
}

static int flatten_lines(struct index_writer *w)
{
	autofree struct interval *items = calloc(w->sequence_count + 1, sizeof(*items));
	struct line_spans lines = { 0 };
	int err = items ? flatten_sequences(w, items, &lines) : -ENOMEM;

	if (!err && w->sequence_count)
		err = flatten_rows(w, &lines);
	free(lines.units);
	spans_deinit(&lines.spans);
	free(take(w->rows.items));
	free(take(w->sequences));
	w->rows.count = w->rows.capacity = w->sequence_count = w->sequence_capacity = 0;
	return err;
}

int writer_flatten(struct index_writer *w)
{
	int err = flatten_nodes(w);

	return err ? err : flatten_lines(w);
}
