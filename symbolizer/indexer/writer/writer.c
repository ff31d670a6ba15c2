/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/writer/writer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/writer/writer_state.h"

enum {
	MAX_SEGMENTS = 4096,
	MAX_CODE_RANGES = 1 << 17,
	MAX_STRINGS = 1 << 24,
	MAX_FILES = 1 << INDEX_FILE_BITS,
	MAX_RANGES = 1 << 26,
	MAX_SEQUENCES = 1 << 24,
	MAX_SYMBOLS = 1 << 24,
	MAX_COLUMN = (1 << INDEX_COLUMN_BITS) - 1,
	MAX_WANTED = 4096,
};
static const size_t MAX_STRING_BYTES = UINT64_C(1) << 30;

struct index_writer *index_writer_create(void)
{
	struct index_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	map_init(&w->file_numbers, MAX_FILES);
	map_init(&w->asked_starts, MAX_RANGES);
	if (intern_init(&w->strings, MAX_STRINGS, MAX_STRING_BYTES) ||
		array_reserve(w->files, w->file_capacity, 1, MAX_FILES)) {
		index_writer_destroy(w);
		return NULL;
	}
	w->files[w->file_count++] = 0;
	return w;
}

void index_writer_destroy(struct index_writer *w)
{
	if (!w)
		return;
	free(w->segments);
	free(w->code);
	intern_deinit(&w->strings);
	map_deinit(&w->file_numbers);
	map_deinit(&w->asked_starts);
	free(w->files);
	free(w->nodes);
	free(w->ranges);
	free(w->symbols);
	writer_extents_free(w);
	free(w->rows.items);
	free(w->sequences);
	free(w->unwind_pages);
	free(w->unwind_words);
	free(w->functions);
	free(w->returns);
	free(w->wanted);
	writer_lines_destroy(w->lines);
	spans_deinit(&w->spans);
	free(w);
}

int writer_segment(struct index_writer *w, const struct writer_segment *segment)
{
	uint64_t end;
	int err;

	if (!segment->size || __builtin_add_overflow(segment->address, segment->size, &end))
		return 0;
	err = array_reserve(w->segments, w->segment_capacity, w->segment_count + 1, MAX_SEGMENTS);
	if (err)
		return err;
	w->segments[w->segment_count++] = (struct index_segment_entry){
		.address = segment->address,
		.size = segment->size,
		.file_off = segment->file_off,
	};
	return 0;
}

int writer_code(struct index_writer *w, uint64_t address, uint64_t size)
{
	uint64_t end;
	int err;

	if (!size || __builtin_add_overflow(address, size, &end))
		return 0;
	err = array_reserve(w->code, w->code_capacity, w->code_count + 1, MAX_CODE_RANGES);
	if (err)
		return err;
	w->code[w->code_count++] = (struct code_range){ .low = address, .high = end };
	return 0;
}

static int writer_by_low(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static int code_from_segments(struct index_writer *w)
{
	int err = 0;

	for (size_t i = 0; i < w->segment_count && !err; i++)
		err = writer_code(w, w->segments[i].address, w->segments[i].size);
	return err;
}

int writer_close_code(struct index_writer *w)
{
	size_t count = 0;
	int err;

	if (w->code_closed)
		return 0;
	err = w->code_count ? 0 : code_from_segments(w);
	if (err)
		return err;
	w->code_closed = true;
	if (!w->code_count)
		return 0;
	qsort(w->code, w->code_count, sizeof(*w->code), writer_by_low);
	w->base = w->code[0].low;
	for (size_t i = 0; i < w->code_count; i++) {
		struct code_range range = w->code[i];

		if (range.low - w->base >= UINT32_MAX)
			break;
		range.high = w->base + MIN(range.high - w->base, UINT32_MAX - 1);
		if (count && range.low <= w->code[count - 1].high)
			w->code[count - 1].high = MAX(range.high, w->code[count - 1].high);
		else
			w->code[count++] = range;
	}
	w->code_count = count;
	return 0;
}

bool writer_code_offset(
	const struct index_writer *w, uint64_t address, uint32_t *ret_offset, uint32_t *ret_end)
{
	size_t low = 0, high = w->code_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->code[middle].high <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == w->code_count || address < w->code[low].low)
		return false;
	*ret_offset = (uint32_t)(address - w->base);
	*ret_end = (uint32_t)(w->code[low].high - w->base);
	return true;
}

int writer_code_at(struct index_writer *w, uint64_t address, bool *ret_found, uint64_t *ret_end)
{
	uint32_t offset, end = 0;
	bool found;
	int err = writer_close_code(w);

	if (err)
		return err;
	found = writer_code_offset(w, address, &offset, &end);
	*ret_found = found;
	*ret_end = w->base + end;
	return 0;
}

/* Returns HIGH as an offset, at most END. */
static uint32_t end_offset(const struct index_writer *w, uint64_t high, uint32_t end)
{
	return (uint32_t)MIN(high - w->base, (uint64_t)end);
}

void writer_allow(struct index_writer *w, uint64_t bytes)
{
	w->work = work_for(bytes);
	w->is_bounded = true;
}

struct work *writer_work(struct index_writer *w)
{
	return w->is_bounded ? &w->work : NULL;
}

int writer_string(struct index_writer *w, const char *text, size_t size, uint32_t *ret_string)
{
	if (!work_spend(writer_work(w), size))
		return -EBADMSG;
	return intern_bytes(&w->strings, text, size, ret_string);
}

void writer_ask(struct index_writer *w, const uint64_t *addresses, size_t count)
{
	w->asked = addresses;
	w->asked_count = count;
}

bool writer_asks(const struct index_writer *w)
{
	return w->asked;
}

bool writer_asks_symbol(struct index_writer *w, uint64_t address, uint64_t size)
{
	uint64_t end, found;

	if (!w->asked)
		return true;
	return size && !__builtin_add_overflow(address, size, &end) &&
	       (writer_is_asked(w, address, end) || map_get(&w->asked_starts, address, &found));
}

const uint64_t *writer_asked(const struct index_writer *w, size_t *ret_count)
{
	*ret_count = w->asked_count;
	return w->asked;
}

size_t writer_first_asked(const struct index_writer *w, uint64_t address)
{
	size_t first = 0, end = w->asked_count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (w->asked[middle] < address)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

bool writer_is_asked(struct index_writer *w, uint64_t low, uint64_t high)
{
	size_t first;

	if (!w->asked)
		return true;
	if (low >= w->unasked && high <= w->unasked_end)
		return false;
	first = writer_first_asked(w, low);
	if (first < w->asked_count && w->asked[first] < high)
		return true;
	w->unasked = first ? w->asked[first - 1] + 1 : 0;
	w->unasked_end = first < w->asked_count ? w->asked[first] : UINT64_MAX;
	return false;
}

void writer_foreign(struct index_writer *w, bool is_foreign)
{
	w->is_foreign = is_foreign;
}

int writer_node(struct index_writer *w, const struct writer_node *node, uint32_t *ret_node)
{
	const struct build_node *parent = NULL;
	uint32_t number = (uint32_t)w->node_count;
	int err;

	if (node->parent != WRITER_NONE && node->parent >= w->node_count)
		return -EBADMSG;
	if (node->parent != WRITER_NONE && w->nodes[node->parent].depth >= INDEX_MAX_FRAMES - 1) {
		*ret_node = node->parent; /* deeper than any lookup returns */
		return 0;
	}
	err = array_reserve(w->nodes, w->node_capacity, w->node_count + 1, WRITER_MAX_NODES);
	if (err)
		return err;
	if (node->parent != WRITER_NONE)
		parent = &w->nodes[node->parent];
	w->nodes[w->node_count++] = (struct build_node){
		.parent = node->parent,
		.linkage = node->linkage,
		.name = node->name,
		.start_line = node->start_line,
		.call_file = node->call_file,
		.call_line = node->call_line,
		.call_column = node->call_column,
		.root = parent ? parent->root : number,
		.unit = node->unit,
		.depth = parent ? parent->depth + 1 : 0,
		.is_foreign = w->is_foreign,
	};
	*ret_node = number;
	return 0;
}

int writer_range(struct index_writer *w, uint32_t node, uint64_t low, uint64_t high)
{
	uint32_t offset, end;
	int err = writer_close_code(w);

	if (err)
		return err;
	if (node >= w->node_count)
		return -EBADMSG;
	if (low >= high || !writer_code_offset(w, low, &offset, &end) ||
		!writer_is_asked(w, low, high))
		return 0;
	err = w->asked ? map_set(&w->asked_starts, low, 1) : 0;
	if (err)
		return err;
	err = array_reserve(w->ranges, w->range_capacity, w->range_count + 1, MAX_RANGES);
	if (err)
		return err;
	w->ranges[w->range_count++] = (struct interval){
		.low = offset,
		.high = end_offset(w, high, end),
		.id = node,
	};
	return 0;
}

int writer_sequence_begin(struct index_writer *w, uint32_t unit)
{
	int err = writer_close_code(w);

	if (err)
		return err;
	w->rows.count -= w->in_sequence ? w->sequence.row_count : 0; /* drop one without end */
	w->in_sequence = true;
	w->sequence = (struct build_sequence){
		.unit = unit,
		.first_row = (uint32_t)w->rows.count,
	};
	return 0;
}

static int file_number(struct index_writer *w, uint32_t file, uint32_t *ret_number)
{
	uint64_t known;
	int err;

	if (file == w->last_file) {
		*ret_number = w->last_file_number;
		return 0;
	}
	if (!map_get(&w->file_numbers, file, &known)) {
		err = array_reserve(w->files, w->file_capacity, w->file_count + 1, MAX_FILES);
		if (!err)
			err = map_set(&w->file_numbers, file, w->file_count);
		if (err)
			return err;
		known = w->file_count;
		w->files[w->file_count++] = file;
	}
	w->last_file = file;
	w->last_file_number = (uint32_t)known;
	*ret_number = (uint32_t)known;
	return 0;
}

static int append_row(struct index_writer *w, struct index_row row)
{
	struct build_sequence *s = &w->sequence;
	struct index_row *last = s->row_count ? &w->rows.items[w->rows.count - 1] : NULL;
	int err;

	if (last && row.address < last->address)
		return 0;
	if (last && row.address == last->address) {
		*last = row;
		return 0;
	}
	if (last && row.line == last->line && row.place == last->place)
		return 0;
	err = array_reserve(w->rows.items, w->rows.capacity, w->rows.count + 1, WRITER_MAX_ROWS);
	if (err)
		return err;
	w->rows.items[w->rows.count++] = row;
	s->row_count++;
	return 0;
}

int writer_row(
	struct index_writer *w, uint64_t address, uint32_t file, uint32_t line, uint32_t column)
{
	uint32_t offset, end, number;
	int err;

	if (!w->in_sequence)
		return 0;
	if (!writer_code_offset(w, address, &offset, &end)) {
		/* A sequence that does not start in code belongs to a discarded function. */
		w->in_sequence = w->sequence.row_count;
		return 0;
	}
	err = file_number(w, file, &number);
	if (err)
		return err;
	if (!w->sequence.row_count) {
		w->sequence.low = offset;
		w->sequence_limit = end;
	}
	if (offset >= w->sequence_limit)
		return 0;
	return append_row(
		w, (struct index_row){
			   .address = offset,
			   .line = line,
			   .place = number | (column > MAX_COLUMN ? 0 : column) << INDEX_FILE_BITS,
		   });
}

int writer_sequence_end(struct index_writer *w, uint64_t end_address)
{
	struct build_sequence *s = &w->sequence;
	int err;

	if (!w->in_sequence || !s->row_count)
		return 0;
	w->in_sequence = false;
	s->high = end_address < w->base ? 0 : end_offset(w, end_address, w->sequence_limit);
	if (s->high <= s->low) {
		w->rows.count -= s->row_count;
		return 0;
	}
	err = array_reserve(
		w->sequences, w->sequence_capacity, w->sequence_count + 1, MAX_SEQUENCES);
	if (err)
		return err;
	w->sequences[w->sequence_count++] = *s;
	return 0;
}

int writer_symbol(struct index_writer *w, uint64_t address, uint64_t size, uint64_t limit,
	uint32_t name, enum writer_symbol_rank rank)
{
	uint32_t offset, end;
	uint64_t high;
	int err = writer_close_code(w);

	if (err)
		return err;
	if (!name || limit <= address || !writer_code_offset(w, address, &offset, &end))
		return 0;
	if (__builtin_add_overflow(address, size, &high))
		return 0;
	end = end_offset(w, limit, end);
	err = array_reserve(w->symbols, w->symbol_capacity, w->symbol_count + 1, MAX_SYMBOLS);
	if (err)
		return err;
	w->symbols[w->symbol_count++] = (struct build_symbol){
		.low = offset,
		.high = size ? end_offset(w, high, end) : 0,
		.limit = end,
		.name = name,
		.rank = (uint8_t)(rank & (WRITER_SYMBOL_RESOLVER - 1)),
		.is_resolver = rank & WRITER_SYMBOL_RESOLVER,
		.is_stub = rank & WRITER_SYMBOL_STUB,
		.is_label = rank & WRITER_SYMBOL_LABEL,
		.is_foreign = w->is_foreign,
	};
	return 0;
}

void writer_runtime(
	struct index_writer *w, uint32_t kind, const uint32_t facts[INDEX_RUNTIME_WORDS])
{
	w->runtime.kind = kind;
	memcpy(w->runtime.facts, facts, sizeof(w->runtime.facts));
}

void writer_build_id(struct index_writer *w, const struct build_id *id)
{
	w->build_id = *id;
}

void writer_text_build_id(struct index_writer *w, uint32_t text)
{
	w->text_build_id = text;
}

void writer_file_hash(struct index_writer *w, const struct file_hash *hash)
{
	w->file_hash = *hash;
}

void writer_making(struct index_writer *w, uint32_t toolchain, uint32_t kind)
{
	w->toolchain = toolchain;
	w->kind = kind;
}

static int writer_name(struct index_writer *w, const char *text, uint32_t *ret_string)
{
	return *text ? writer_string(w, text, strlen(text), ret_string) : 0;
}

int writer_debug_names(
	struct index_writer *w, const struct debug_names *own, const struct debug_names *debug)
{
	bool of_debug = debug && debug->alternate[0];
	const struct debug_names *with_alternate = of_debug ? debug : own;
	int err = writer_name(w, own->link, &w->debug.link);

	if (!err)
		err = writer_name(w, with_alternate->alternate, &w->debug.alternate);
	w->debug.link_crc = own->link_crc;
	w->debug.alternate_id = with_alternate->alternate_id;
	w->debug.flags =
		(own->has_dwarf ? INDEX_HAS_DWARF : 0) | (of_debug ? INDEX_ALTERNATE_OF_DEBUG : 0);
	return err;
}

int writer_wanted(struct index_writer *w, uint32_t path)
{
	if (w->wanted_count == MAX_WANTED)
		return 0;
	if (array_reserve(w->wanted, w->wanted_capacity, w->wanted_count + 1, MAX_WANTED))
		return -ENOMEM;
	w->wanted[w->wanted_count++] = path;
	return 0;
}

void writer_source(struct index_writer *w, uint32_t source)
{
	w->sources |= source;
}

int writer_finish(struct index_writer *w, int fd)
{
	int err = writer_close_code(w);

	if (!err)
		err = writer_flatten(w);
	if (!err)
		err = writer_lines_prepare(w);
	writer_order_functions(w);
	if (!err)
		err = writer_output(w, fd);
	return err;
}
