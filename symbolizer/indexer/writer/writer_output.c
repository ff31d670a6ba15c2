/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the file sequentially: all counts are known before the first byte, and the checksum is at
 * the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/writer/writer_select.h"

enum {
	OUTPUT_BYTES = 256 * 1024,
	MIN_SHIFT = 6,
	MAX_SHIFT = 31,
	ENTRIES_PER_PAGE = 8, /* target average */
};

/* The file as a stream: a buffer, the running checksum, the first error. */
struct output {
	int fd, error;
	XXH3_state_t *hash;
	uint64_t offset;
	size_t used;
	uint8_t bytes[OUTPUT_BYTES];
};

static void flush(struct output *out)
{
	if (!out->error && out->used)
		out->error = io_write_all(out->fd, out->bytes, out->used);
	XXH3_64bits_update(out->hash, out->bytes, out->used);
	out->used = 0;
}

static void writer_output_put(struct output *out, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;

	out->offset += size;
	while (size) {
		size_t part = MIN(size, OUTPUT_BYTES - out->used);

		memcpy(out->bytes + out->used, from, part);
		out->used += part;
		from += part;
		size -= part;
		if (out->used == OUTPUT_BYTES)
			flush(out);
	}
}

static void put_u32(struct output *out, uint32_t value)
{
	writer_output_put(out, &value, sizeof(value));
}

static void start_table(struct output *out)
{
	static const uint8_t zeros[INDEX_ALIGN];

	writer_output_put(out, zeros, -out->offset & (INDEX_ALIGN - 1));
}

static uint32_t string_offset(
	const struct index_writer *w, const struct selection *s, uint32_t string)
{
	return string < w->strings.count ? s->string_offsets[string] : 0;
}

/* Chooses the smallest pages that still hold ENTRIES_PER_PAGE entries on average. */
static uint32_t writer_output_choose_shift(uint64_t extent, size_t count)
{
	uint32_t shift = MIN_SHIFT;

	while (shift < MAX_SHIFT && extent >> shift > count / ENTRIES_PER_PAGE + 16)
		shift++;
	return shift;
}

/* Size and extent of a searched table. */
struct tally {
	size_t count;
	uint32_t last_address;
};

static uint32_t shift_of(const struct tally *t)
{
	return writer_output_choose_shift((uint64_t)t->last_address + 1, t->count);
}

static uint64_t page_count(const struct tally *t)
{
	return (((uint64_t)t->last_address + 1) >> shift_of(t)) + 2;
}

static void count_row(void *context, const struct index_row *row)
{
	struct tally *t = context;

	t->count++;
	t->last_address = row->address;
}

static struct index_header make_header(const struct index_writer *w, const struct selection *s)
{
	size_t span_count = w->spans.count;
	struct tally rows = { 0 }, spans = {
		.count = span_count,
		.last_address = span_count ? w->spans.items[span_count - 1].address : 0,
	};
	uint64_t counts[INDEX_TABLES] = {
		[INDEX_SEGMENTS] = w->segment_count,
		[INDEX_SPANS] = span_count,
		[INDEX_SPAN_PAGES] = page_count(&spans),
		[INDEX_NODES] = s->node_count,
		[INDEX_FILES] = w->file_count,
		[INDEX_STRINGS] = s->string_bytes,
		[INDEX_UNWIND_PAGES] = w->unwind_page_count,
		[INDEX_UNWIND_WORDS] = w->unwind_word_count,
		[INDEX_WANTED] = w->wanted_count,
		[INDEX_FUNCTIONS] = w->function_count,
		[INDEX_RETURNS] = w->return_count,
	};
	struct index_header header = {
		.magic = INDEX_MAGIC,
		.version = INDEX_VERSION,
		.header_bytes = sizeof(header),
		.base = w->base,
		.sources = w->sources,
		.span_shift = shift_of(&spans),
		.text_build_id = string_offset(w, s, w->text_build_id),
		.toolchain = string_offset(w, s, w->toolchain),
		.kind = w->kind,
		.build_id = w->build_id,
		.file_hash = w->file_hash,
		.runtime = w->runtime,
		.unwind = w->unwind,
		.debug = w->debug,
	};
	uint64_t offset = sizeof(header);

	header.debug.link = string_offset(w, s, w->debug.link);
	header.debug.alternate = string_offset(w, s, w->debug.alternate);
	writer_lines_each(w, count_row, &rows);
	header.row_shift = shift_of(&rows);
	counts[INDEX_ROWS] = rows.count;
	counts[INDEX_ROW_PAGES] = page_count(&rows);
	for (int i = 0; i < INDEX_TABLES; i++) {
		offset = (offset + INDEX_ALIGN - 1) & ~(uint64_t)(INDEX_ALIGN - 1);
		header.tables[i] = (struct index_table){ .offset = offset, .count = counts[i] };
		offset += counts[i] * index_element_bytes(i);
	}
	header.file_bytes = offset + INDEX_CHECKSUM_BYTES;
	return header;
}

/* Writes a page table from its entries' addresses, given in order. */
struct pager {
	struct output *out;
	uint32_t shift;
	uint64_t next_page;
	uint32_t entry;
};

static void page_entry(struct pager *p, uint32_t address)
{
	for (; p->next_page << p->shift <= address; p->next_page++)
		put_u32(p->out, p->entry);
	p->entry++;
}

static void page_rest(struct pager *p, const struct index_table *pages)
{
	for (; p->next_page < pages->count; p->next_page++)
		put_u32(p->out, p->entry);
}

static void put_spans(struct output *out, const struct index_writer *w, const struct selection *s,
	const struct index_header *header)
{
	struct pager pager = { .out = out, .shift = header->span_shift };
	const struct span *spans = w->spans.items;

	start_table(out);
	for (size_t i = 0; i < w->spans.count; i++) {
		struct index_span span = {
			.address = spans[i].address,
			.node = spans[i].id < w->node_count ? s->node_numbers[spans[i].id]
							    : spans[i].id,
		};

		writer_output_put(out, &span, sizeof(span));
	}
	start_table(out);
	for (size_t i = 0; i < w->spans.count; i++)
		page_entry(&pager, spans[i].address);
	page_rest(&pager, &header->tables[INDEX_SPAN_PAGES]);
}

static void put_nodes(struct output *out, const struct index_writer *w, const struct selection *s)
{
	start_table(out);
	for (size_t i = 0; i < w->node_count; i++) {
		const struct build_node *n = &w->nodes[i];
		struct index_node node = {
			.parent = n->parent == WRITER_NONE ? INDEX_NO_NODE
							   : s->node_numbers[n->parent],
			.name = string_offset(w, s, n->name),
			.linkage = string_offset(w, s, n->linkage),
			.start_line = n->start_line,
			.call_file = string_offset(w, s, n->call_file),
			.call_line = n->call_line,
			.call_column = n->call_column,
		};

		if (s->node_numbers[i] != UINT32_MAX)
			writer_output_put(out, &node, sizeof(node));
	}
}

static void writer_output_put_row(void *context, const struct index_row *row)
{
	writer_output_put(context, row, sizeof(*row));
}

static void page_row(void *context, const struct index_row *row)
{
	page_entry(context, row->address);
}

static void writer_output_put_rows(
	struct output *out, const struct index_writer *w, const struct index_header *header)
{
	struct pager pager = { .out = out, .shift = header->row_shift };

	start_table(out);
	writer_lines_each(w, writer_output_put_row, out);
	start_table(out);
	writer_lines_each(w, page_row, &pager);
	page_rest(&pager, &header->tables[INDEX_ROW_PAGES]);
}

static void writer_output_put_strings(
	struct output *out, const struct index_writer *w, const struct selection *s)
{
	start_table(out);
	for (size_t i = 0; i < w->file_count; i++)
		put_u32(out, string_offset(w, s, w->files[i]));
	start_table(out);
	writer_output_put(out, "", 1);
	for (size_t i = 0; i < s->string_count; i++)
		writer_output_put(out, intern_text(&w->strings, s->strings[i]),
			intern_size(&w->strings, s->strings[i]) + 1);
}

static void put_unwind(struct output *out, const struct index_writer *w)
{
	start_table(out);
	writer_output_put(out, w->unwind_pages, w->unwind_page_count * sizeof(*w->unwind_pages));
	start_table(out);
	writer_output_put(out, w->unwind_words, w->unwind_word_count * sizeof(*w->unwind_words));
}

static void put_wanted(struct output *out, const struct index_writer *w, const struct selection *s)
{
	start_table(out);
	for (size_t i = 0; i < w->wanted_count; i++)
		put_u32(out, string_offset(w, s, w->wanted[i]));
}

static void put_functions(
	struct output *out, const struct index_writer *w, const struct selection *s)
{
	start_table(out);
	for (size_t i = 0; i < w->function_count; i++) {
		struct index_function_entry entry = w->functions[i];

		entry.name = string_offset(w, s, entry.name);
		entry.linkage = string_offset(w, s, entry.linkage);
		writer_output_put(out, &entry, sizeof(entry));
	}
	start_table(out);
	writer_output_put(out, w->returns, w->return_count * sizeof(*w->returns));
}

static void put_file(struct output *out, const struct index_writer *w, const struct selection *s)
{
	struct index_header header = make_header(w, s);
	uint64_t checksum;

	writer_output_put(out, &header, sizeof(header));
	start_table(out);
	writer_output_put(out, w->segments, w->segment_count * sizeof(*w->segments));
	put_spans(out, w, s, &header);
	put_nodes(out, w, s);
	writer_output_put_rows(out, w, &header);
	writer_output_put_strings(out, w, s);
	put_unwind(out, w);
	put_wanted(out, w, s);
	put_functions(out, w, s);
	flush(out);
	checksum = XXH3_64bits_digest(out->hash);
	writer_output_put(out, &checksum, sizeof(checksum));
	flush(out);
}

static int writer_output_write_file(const struct index_writer *w, const struct selection *s, int fd)
{
	autofree struct output *out = calloc(1, sizeof(*out));
	int err;

	if (!out)
		return -ENOMEM;
	out->fd = fd;
	out->hash = XXH3_createState();
	if (!out->hash)
		return -ENOMEM;
	XXH3_64bits_reset(out->hash);
	put_file(out, w, s);
	err = out->error;
	XXH3_freeState(out->hash);
	return err;
}

static int writer_output_by_address(const void *a, const void *b)
{
	const struct index_segment_entry *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

int writer_output(struct index_writer *w, int fd)
{
	struct selection s;
	int err;

	if (w->segment_count)
		qsort(w->segments, w->segment_count, sizeof(*w->segments),
			writer_output_by_address);
	err = selection_init(w, &s);
	if (!err)
		err = writer_output_write_file(w, &s, fd);
	selection_deinit(&s);
	return err;
}
