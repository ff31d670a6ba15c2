/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/utf8.h"
#include "symbolizer/perf_map_pieces.h"

enum {
	READ_BYTES = 64 * 1024, /* also the longest line */
	MAX_FILE_BYTES = 64 << 20,
	MAX_NAME_BYTES = 4096, /* the rest of a longer one is cut off */
};

struct perf_map {
	struct pieces pieces;
	struct buffer text;
	dev_t device;
	ino_t inode;
	off_t read_bytes; /* of whole lines */
	size_t bad_lines;
	bool skipping; /* the rest of a line that is too long */
};

int perf_map_create(struct perf_map **ret_map)
{
	struct perf_map *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	buffer_init(&m->text, MAX_FILE_BYTES);
	*ret_map = m;
	return 0;
}

void perf_map_destroy(struct perf_map *m)
{
	if (!m)
		return;
	free(m->pieces.items);
	buffer_deinit(&m->text);
	free(m);
}

/* ---- lines --------------------------------------------------------------------------------- */

static int hex_digit(uint8_t byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* A hex number, with or without `0x`, and the blank after it. */
static bool parse_hex(struct cursor *c, uint64_t *ret_value)
{
	uint64_t value = 0;
	int digits = 0;

	if (cursor_left(c) > 2 && c->at[0] == '0' && (c->at[1] | 0x20) == 'x')
		cursor_skip(c, 2);
	for (;; digits++) {
		uint8_t byte = cursor_u8(c);
		int digit = hex_digit(byte);

		if (digit < 0 && byte == ' ' && digits > 0)
			break;
		if (digit < 0 || value >> 60)
			return false;
		value = value << 4 | (uint64_t)digit;
	}
	*ret_value = value;
	return true;
}

static int add_name(struct perf_map *m, const char *name, size_t size, uint32_t *ret_name)
{
	char *copy = buffer_room(&m->text, size + 1);

	if (!copy)
		return m->text.error;
	memcpy(copy, name, size);
	copy[size] = 0;
	utf8_clean(copy, size, true);
	*ret_name = (uint32_t)m->text.size;
	m->text.size += size + 1;
	return 0;
}

static int add_line(struct perf_map *m, struct pieces *new, const char *line, size_t length)
{
	struct cursor c = cursor_over(line, length);
	uint64_t start, size;
	struct piece piece;
	size_t name_size;
	int err;

	if (!parse_hex(&c, &start) || !parse_hex(&c, &size) || !size || size > UINT32_MAX ||
		start + size < start || !cursor_left(&c)) {
		m->bad_lines++;
		return 0;
	}
	name_size = MIN(cursor_left(&c), MAX_NAME_BYTES);
	piece = (struct piece){ .start = start, .size = (uint32_t)size };
	err = array_reserve(new->items, new->capacity, new->count + 1, PIECES_LIMIT);
	if (!err)
		err = add_name(m, cursor_bytes(&c, name_size), name_size, &piece.name);
	if (!err)
		new->items[new->count++] = piece;
	return err;
}

/* Whole lines of BYTES; *RET_USED says how many bytes they were. */
static int add_lines(
	struct perf_map *m, struct pieces *new, const char *bytes, size_t size, size_t *ret_used)
{
	const char *newline;
	size_t used = 0;
	int err = 0;

	while (!err && (newline = memchr(bytes + used, '\n', size - used))) {
		size_t length = (size_t)(newline - bytes) - used;

		if (m->skipping)
			m->skipping = false;
		else
			err = add_line(m, new, bytes + used, length);
		used += length + 1;
	}
	if (!err && used == 0 && size == READ_BYTES) {
		m->bad_lines += !m->skipping;
		m->skipping = true;
		used = size;
	}
	*ret_used = used;
	return err;
}

static int read_lines(struct perf_map *m, struct pieces *new, int fd)
{
	autofree char *bytes = malloc(READ_BYTES);

	if (!bytes)
		return -ENOMEM;
	for (;;) {
		ssize_t got;
		size_t used;
		int err;

		if (m->read_bytes >= MAX_FILE_BYTES)
			return -E2BIG;
		got = pread(fd, bytes, READ_BYTES, m->read_bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		err = add_lines(m, new, bytes, (size_t)got, &used);
		m->read_bytes += (off_t)used;
		if (err || !used)
			return err;
	}
}

static int merge(struct perf_map *m, struct pieces *lines)
{
	autocall(pieces_deinit) struct pieces flat = { 0 }, merged = { 0 };
	int err;

	if (!lines->count)
		return 0;
	err = pieces_flatten(lines, &flat);
	if (!err)
		err = pieces_lay_over(&m->pieces, &flat, &merged);
	if (err)
		return err;
	free(m->pieces.items);
	m->pieces = merged;
	merged = (struct pieces){ 0 };
	return 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void forget(struct perf_map *m)
{
	free(take(m->pieces.items));
	m->pieces = (struct pieces){ 0 };
	buffer_deinit(&m->text);
	buffer_init(&m->text, MAX_FILE_BYTES);
	m->read_bytes = 0;
	m->bad_lines = 0;
	m->skipping = false;
}

int perf_map_update(struct perf_map *m, int fd)
{
	autocall(pieces_deinit) struct pieces lines = { 0 };
	struct stat st;
	int err, merge_err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if (st.st_dev != m->device || st.st_ino != m->inode || st.st_size < m->read_bytes)
		forget(m);
	m->device = st.st_dev;
	m->inode = st.st_ino;
	if (st.st_size == m->read_bytes)
		return 0;
	err = read_lines(m, &lines, fd);
	/* What was read before an error is as good as ever. */
	merge_err = merge(m, &lines);
	return err ? err : merge_err;
}

bool perf_map_lookup(
	const struct perf_map *m, uint64_t pc, const char **ret_name, uint64_t *ret_start)
{
	size_t low = 0, high = m->pieces.count;
	const struct piece *p;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->pieces.items[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	p = low ? &m->pieces.items[low - 1] : NULL;
	if (!p || pc >= piece_end(p))
		return false;
	*ret_name = (const char *)m->text.bytes + p->name;
	*ret_start = p->start - p->before;
	return true;
}

size_t perf_map_count(const struct perf_map *m)
{
	return m->pieces.count;
}

size_t perf_map_bad_lines(const struct perf_map *m)
{
	return m->bad_lines;
}

size_t perf_map_bytes(const struct perf_map *m)
{
	return sizeof(*m) + m->pieces.capacity * sizeof(*m->pieces.items) + m->text.capacity;
}
