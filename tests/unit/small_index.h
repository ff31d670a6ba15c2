/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Short helpers that add facts to an index writer and query the resulting index. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/writer/writer.h"
#include "tests/unit/elf_writer.h"

enum { TEXT = 0x401000, TEXT_SIZE = 0x10000 };

static inline struct index_writer *create(void)
{
	struct index_writer *w = index_writer_create();

	assert_non_null(w);
	assert_int_equal(writer_segment(w, &(struct writer_segment){ 0x400000, 0x20000, 0 }), 0);
	assert_int_equal(writer_code(w, TEXT, TEXT_SIZE), 0);
	return w;
}

static inline uint32_t string(struct index_writer *w, const char *text)
{
	uint32_t number;

	assert_int_equal(writer_string(w, text, strlen(text), &number), 0);
	return number;
}

static inline uint32_t node_of_unit(
	struct index_writer *w, uint32_t parent, const char *name, uint32_t unit)
{
	struct writer_node node = {
		.parent = parent,
		.linkage = string(w, name),
		.start_line = 5,
		.call_file = parent == WRITER_NONE ? 0 : string(w, "/src/caller.c"),
		.call_line = parent == WRITER_NONE ? 0 : 77,
		.call_column = parent == WRITER_NONE ? 0 : 7,
		.unit = unit,
	};
	uint32_t number;

	assert_int_equal(writer_node(w, &node, &number), 0);
	return number;
}

static inline uint32_t function(
	struct index_writer *w, const char *name, uint64_t low, uint64_t high)
{
	uint32_t number = node_of_unit(w, WRITER_NONE, name, 0);

	assert_int_equal(writer_range(w, number, TEXT + low, TEXT + high), 0);
	return number;
}

static inline uint32_t inlined(
	struct index_writer *w, uint32_t parent, const char *name, uint64_t low, uint64_t high)
{
	uint32_t number = node_of_unit(w, parent, name, 0);

	assert_int_equal(writer_range(w, number, TEXT + low, TEXT + high), 0);
	return number;
}

static inline void row(struct index_writer *w, uint64_t address, const char *file, uint32_t line)
{
	assert_int_equal(writer_row(w, TEXT + address, string(w, file), line, line + 1), 0);
}

static inline void sequence(struct index_writer *w, uint32_t unit, uint64_t low, uint64_t high,
	const char *file, uint32_t line)
{
	assert_int_equal(writer_sequence_begin(w, unit), 0);
	row(w, low, file, line);
	assert_int_equal(writer_sequence_end(w, TEXT + high), 0);
}

static inline void symbol(struct index_writer *w, uint64_t low, uint64_t size, const char *name,
	enum writer_symbol_rank rank)
{
	assert_int_equal(
		writer_symbol(w, TEXT + low, size, TEXT + TEXT_SIZE, string(w, name), rank), 0);
}

static inline int write_index(struct index_writer *w)
{
	int fd = memory_file("", 0);

	assert_int_equal(writer_finish(w, fd), 0);
	index_writer_destroy(w);
	return fd;
}

static inline struct index *finish(struct index_writer *w)
{
	autoclose int fd = write_index(w);
	struct index *index = NULL;

	assert_int_equal(index_open(fd, &index), 0);
	return index;
}

/* Returns the frames at TEXT + OFFSET as `inner<outer`. */
static inline const char *names(const struct index *index, uint64_t offset)
{
	struct index_frame frames[INDEX_MAX_FRAMES];
	size_t count = index_lookup(index, TEXT + offset, frames, INDEX_MAX_FRAMES);
	static char text[4096];
	size_t used = 0;

	*text = 0;
	for (size_t i = 0; i < count && used < sizeof(text); i++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", i ? "<" : "", frames[i].name);
	return text;
}

/* Returns the position of the innermost frame as `file:line:column`, or "". */
static inline const char *place(const struct index *index, uint64_t offset)
{
	struct index_frame frame;
	static char text[4096];

	if (!index_lookup(index, TEXT + offset, &frame, 1))
		return "";
	snprintf(text, sizeof(text), "%s:%u:%u", frame.file, frame.line, frame.column);
	return text;
}
