/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds one line for each address: inside a known function only sequences of its own unit count;
 * elsewhere the first sequence given. The rows are not stored a second time: writer_lines_each()
 * produces them as often as needed.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/indexer/writer/writer_state.h"

/* The spans of one unit's sequences, a range of writer_lines.spans. */
struct unit_spans {
	uint32_t unit; /* WRITER_NONE: of all sequences together */
	size_t first, count;
};

struct writer_lines {
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

static int writer_lines_add_unit(
	struct writer_lines *lines, uint32_t unit, struct interval *items, size_t count)
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
	const struct index_writer *w, struct interval *items, struct writer_lines *lines)
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
		err = writer_lines_add_unit(lines, unit, &items[first], end - first);
		first = end;
	}
	return err ? err : writer_lines_add_unit(lines, WRITER_NONE, items, count);
}

static const struct unit_spans *find_unit(struct writer_lines *lines, uint32_t unit)
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

/*
 * Returns UNIT's last span at or below ADDRESS, else its first; *RET_END is the end of its spans.
 */
static const struct span *find_lines(
	struct writer_lines *lines, uint32_t unit, uint32_t address, const struct span **ret_end)
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

/* Delays each row until the next one's address is known: the last row at an address wins. */
struct row_stream {
	writer_row_sink *sink;
	void *context;
	struct index_row last;
	bool any;
};

/* Emits ROW with ADDRESS as its start. */
static void emit_row(struct row_stream *stream, uint32_t address, struct index_row row)
{
	struct index_row *last = &stream->last;

	row.address = address;
	if (stream->any && last->line == row.line && last->place == row.place)
		return;
	if (stream->any && last->address != address)
		stream->sink(stream->context, last);
	*last = row;
	stream->any = true;
}

/* Emits the rows of one sequence in [LOW, HIGH). */
static void emit_sequence(const struct index_writer *w, struct row_stream *stream, uint32_t number,
	uint32_t low, uint32_t high)
{
	const struct build_sequence *s = &w->sequences[number];
	const struct index_row *rows = &w->rows.items[s->first_row];
	size_t first = 0, end = s->row_count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (rows[middle].address <= low)
			first = middle + 1;
		else
			end = middle;
	}
	if (first)
		emit_row(stream, low, rows[first - 1]);
	for (; first < s->row_count && rows[first].address < high; first++)
		emit_row(stream, rows[first].address, rows[first]);
}

/* Emits the rows of [LOW, HIGH), where all code belongs to functions of UNIT. */
static void emit_stretch(const struct index_writer *w, struct row_stream *stream, uint32_t unit,
	uint32_t low, uint32_t high)
{
	const struct span *end = NULL;
	const struct span *span = find_lines(w->lines, unit, low, &end);

	if (!span || span->address > low)
		emit_row(stream, low, (struct index_row){ 0 });
	for (; span && span != end && span->address < high; span++) {
		uint32_t from = MAX(span->address, low);
		uint32_t to = span + 1 == end ? high : MIN(span[1].address, high);

		if (span->id == UINT32_MAX)
			emit_row(stream, from, (struct index_row){ 0 });
		else
			emit_sequence(w, stream, span->id, from, to);
	}
}

static uint32_t span_unit(const struct index_writer *w, size_t span)
{
	uint32_t id = w->spans.items[span].id;

	return id < w->node_count ? w->nodes[w->nodes[id].root].unit : WRITER_NONE;
}

void writer_lines_each(const struct index_writer *w, writer_row_sink *sink, void *context)
{
	struct row_stream stream = { .sink = sink, .context = context };
	uint32_t low = 0, unit = WRITER_NONE;

	if (!w->sequence_count)
		return;
	for (size_t i = 0; i < w->spans.count; i++) {
		uint32_t next = span_unit(w, i);

		if (next == unit)
			continue;
		if (w->spans.items[i].address > low)
			emit_stretch(w, &stream, unit, low, w->spans.items[i].address);
		low = w->spans.items[i].address;
		unit = next;
	}
	emit_stretch(w, &stream, unit, low, UINT32_MAX);
	if (stream.any)
		sink(context, &stream.last);
}

int writer_lines_prepare(struct index_writer *w)
{
	autofree struct interval *items = calloc(w->sequence_count + 1, sizeof(*items));

	w->lines = calloc(1, sizeof(*w->lines));
	if (!items || !w->lines)
		return -ENOMEM;
	return flatten_sequences(w, items, w->lines);
}

void writer_lines_destroy(struct writer_lines *lines)
{
	if (!lines)
		return;
	free(lines->units);
	spans_deinit(&lines->spans);
	free(lines);
}
