/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/perf_map/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/foreign.h"
#include "base/utf8.h"
#include "symbolizer/perf_map/perf_map_names.h"
#include "symbolizer/perf_map/perf_map_pieces.h"
#include "symbolizer/perf_map/perf_map_prefix.h"

enum {
	READ_BYTES = 64 * 1024, /* also the longest line */
	UPDATE_BYTES = 128 << 20, /* per update: less than a second */
	MAX_NAME_BYTES = 4096, /* longer names are truncated */
	/* Lines that are merged at once. */
	BATCH_LINES = 1 << 17,
	MAX_GENERATIONS = 8, /* of forks, each with lines of its own */
};

/* File times have the granularity of timer ticks, up to 10 ms. */
static const uint64_t TICK_NS = 20000000;

struct perf_map {
	unsigned int references, generation;
	struct perf_map *base; /* the parent's map, as of base_mark; NULL = none */
	struct perf_map_mark base_mark;
	struct pieces pieces;
	struct buffer text;
	uint32_t epoch; /* changes when names move in the text */
	uint64_t began_ns;
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed; /* mtime of the file at the last update */
	struct prefix prefix; /* whole lines only */
	bool seen; /* this content was seen before: ignored_bytes is set */
	uint64_t ignored_bytes; /* lines up to here belong to another program */
	size_t bad_lines;
	uint64_t dropped;
	bool skipping; /* inside a line that is too long */
	bool behind;
};

int perf_map_create(struct perf_map **ret_map)
{
	struct perf_map *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->references = 1;
	buffer_init(&m->text, NAMES_TEXT_BYTES);
	*ret_map = m;
	return 0;
}

struct perf_map *perf_map_ref(struct perf_map *m)
{
	m->references++;
	return m;
}

void perf_map_destroy(struct perf_map *m)
{
	while (m && --m->references == 0) {
		struct perf_map *base = m->base;

		pieces_deinit(&m->pieces);
		buffer_deinit(&m->text);
		prefix_deinit(&m->prefix);
		free(m);
		m = base;
	}
}

void perf_map_set_beginning(struct perf_map *m, uint64_t began_ns)
{
	m->began_ns = began_ns;
}

int perf_map_fork(struct perf_map *parent, struct perf_map **ret_child)
{
	struct perf_map_mark mark = perf_map_mark(parent);
	struct perf_map *child;
	int err;

	while (parent && !parent->pieces.count) {
		mark = parent->base_mark;
		parent = parent->base;
	}
	if (!parent)
		return -ENOENT;
	if (parent->generation == MAX_GENERATIONS)
		return -E2BIG;
	err = perf_map_create(&child);
	if (err)
		return err;
	child->base = perf_map_ref(parent);
	child->base_mark = mark;
	child->generation = parent->generation + 1;
	*ret_child = child;
	return 0;
}

int perf_map_renew(const struct perf_map *m, struct perf_map **ret_map)
{
	struct perf_map *map;
	int err = perf_map_create(&map);

	if (err)
		return err;
	map->base = m->base ? perf_map_ref(m->base) : NULL;
	map->base_mark = m->base_mark;
	map->generation = m->generation;
	map->began_ns = m->began_ns;
	*ret_map = map;
	return 0;
}

/* ---- lines --------------------------------------------------------------------------------- */

static int hex_digit(uint8_t byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Parses a hex number, with or without `0x`, and the blank after it. */
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

static int perf_map_add_name(struct perf_map *m, const char *name, size_t size, uint32_t *ret_name)
{
	char *copy = buffer_room(&m->text, size + 1);

	if (!copy)
		return m->text.error;
	memcpy(copy, name, size);
	copy[size] = 0;
	utf8_clean(copy, size);
	*ret_name = (uint32_t)m->text.size;
	m->text.size += size + 1;
	return 0;
}

static int perf_map_add_line(
	struct perf_map *m, struct pieces *new, const char *line, size_t length)
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
		err = perf_map_add_name(m, cursor_bytes(&c, name_size), name_size, &piece.name);
	if (!err)
		new->items[new->count++] = piece;
	return err;
}

/* Parses the complete lines in BYTES; *RET_USED is their size. */
static int perf_map_add_lines(
	struct perf_map *m, struct pieces *new, const char *bytes, size_t size, size_t *ret_used)
{
	const char *newline;
	size_t used = 0;
	int err = 0;

	while (!err && (newline = memchr(bytes + used, '\n', size - used))) {
		size_t length = (size_t)(newline - bytes) - used;

		if (m->skipping)
			m->skipping = false;
		else if (m->prefix.bytes + used >= m->ignored_bytes)
			err = perf_map_add_line(m, new, bytes + used, length);
		/* After -ENOMEM the line is read again. */
		if (err != -ENOMEM)
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
	pieces_deinit(&m->pieces);
	m->pieces = merged;
	merged = (struct pieces){ 0 };
	lines->count = 0;
	return 0;
}

static int keep_limits(struct perf_map *m)
{
	uint64_t dropped;
	int err;

	if (m->pieces.count <= NAMES_LIMIT && m->text.size <= NAMES_TEXT_BYTES - 2 * READ_BYTES)
		return 0;
	err = names_keep_newest(&m->pieces, &m->text, &dropped);
	if (err)
		return err;
	m->dropped += dropped;
	m->epoch++;
	return 0;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void perf_map_forget(struct perf_map *m)
{
	pieces_deinit(&m->pieces);
	m->pieces = (struct pieces){ 0 };
	buffer_deinit(&m->text);
	buffer_init(&m->text, NAMES_TEXT_BYTES);
	prefix_deinit(&m->prefix);
	m->epoch++;
	m->bad_lines = 0;
	m->skipping = m->behind = false;
}

/* Merges LINES into the pieces, then enforces the limits. */
static int settle(struct perf_map *m, struct pieces *lines)
{
	int err = merge(m, lines);

	return err ? err : keep_limits(m);
}

static bool is_batch_full(const struct perf_map *m, const struct pieces *lines)
{
	return lines->count >= BATCH_LINES || m->text.size > NAMES_TEXT_BYTES - 2 * READ_BYTES;
}

static int read_piece(struct perf_map *m, struct pieces *lines, int fd, char *bytes, bool *ret_end)
{
	ssize_t got = foreign_read_at(fd, m->prefix.bytes, bytes, READ_BYTES);
	size_t used = 0;
	int err, prefix_err;

	if (got < 0)
		return (int)got;
	err = perf_map_add_lines(m, lines, bytes, (size_t)got, &used);
	prefix_err = prefix_add(&m->prefix, bytes, used);
	*ret_end = used == 0;
	return err ? err : prefix_err;
}

static int read_lines(struct perf_map *m, struct pieces *lines, int fd)
{
	autofree char *bytes = malloc(READ_BYTES);
	uint64_t begin = m->prefix.bytes;
	bool end = false;
	int err = bytes ? 0 : -ENOMEM;

	while (!err && !end) {
		if (m->prefix.bytes - begin >= UPDATE_BYTES)
			return -EAGAIN;
		err = read_piece(m, lines, fd, bytes, &end);
		if (!err && is_batch_full(m, lines))
			err = settle(m, lines);
	}
	return err;
}

static bool perf_map_is_continuation(struct perf_map *m, const struct stat *st, int fd)
{
	if (!m->seen)
		return true;
	return st->st_dev == m->device && st->st_ino == m->inode &&
	       (uint64_t)st->st_size >= MAX(m->prefix.bytes, m->ignored_bytes) &&
	       prefix_is_same(&m->prefix, fd);
}

bool perf_map_continues(struct perf_map *m, int fd)
{
	struct stat st;

	return !foreign_stat(fd, &st) && perf_map_is_continuation(m, &st, fd);
}

static uint64_t time_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec;
}

static void see(struct perf_map *m, const struct stat *st)
{
	if (!m->seen)
		m->ignored_bytes =
			time_of(&st->st_mtim) + TICK_NS < m->began_ns ? (uint64_t)st->st_size : 0;
	m->seen = true;
	m->device = st->st_dev;
	m->inode = st->st_ino;
	m->size = st->st_size;
	m->changed = st->st_mtim;
}

int perf_map_update(struct perf_map *m, int fd)
{
	autocall(pieces_deinit) struct pieces lines = { 0 };
	struct stat st;
	int err, settle_err;

	err = foreign_stat(fd, &st);
	if (err)
		return err;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if (!perf_map_is_continuation(m, &st, fd)) {
		perf_map_forget(m);
		m->seen = false;
	}
	see(m, &st);
	if ((uint64_t)st.st_size == m->prefix.bytes) {
		m->behind = false;
		return 0;
	}
	m->text.error = 0; /* a failed allocation of an earlier update */
	err = read_lines(m, &lines, fd);
	/* Lines read before an error are valid. */
	settle_err = settle(m, &lines);
	/* The lines are lost, so the file is read again from its start. */
	if (settle_err)
		perf_map_forget(m);
	m->behind = err || settle_err;
	return err ? err : settle_err;
}

bool perf_map_is_behind(const struct perf_map *m)
{
	return m->behind;
}

bool perf_map_is_unchanged(const struct perf_map *m, int fd)
{
	struct stat st;

	return m->seen && !foreign_stat(fd, &st) && st.st_dev == m->device &&
	       st.st_ino == m->inode && st.st_size == m->size &&
	       time_of(&st.st_mtim) == time_of(&m->changed);
}

void perf_map_evict(struct perf_map *m)
{
	/* A child may need lines that are no longer in the file. */
	if (m->references == 1)
		perf_map_forget(m);
}

struct perf_map_mark perf_map_mark(const struct perf_map *m)
{
	return (struct perf_map_mark){ .epoch = m->epoch, .text_bytes = (uint32_t)m->text.size };
}

void perf_map_roll_back(struct perf_map *m, const struct perf_map_mark *mark)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->pieces.count && mark->epoch == m->epoch; i++)
		if (m->pieces.items[i].name < mark->text_bytes)
			m->pieces.items[kept++] = m->pieces.items[i];
	m->pieces.count = kept;
}

/* ---- look-ups ------------------------------------------------------------------------------ */

static const struct piece *find_piece(const struct pieces *pieces, uint64_t pc)
{
	size_t low = 0, high = pieces->count;
	const struct piece *p;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pieces->items[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	p = low ? &pieces->items[low - 1] : NULL;
	return p && pc < piece_end(p) ? p : NULL;
}

bool perf_map_lookup(
	const struct perf_map *m, uint64_t pc, const char **ret_name, uint64_t *ret_start)
{
	struct perf_map_mark mark = { .epoch = m->epoch, .text_bytes = UINT32_MAX };

	for (; m && !m->behind && m->epoch == mark.epoch; m = m->base) {
		const struct piece *p = find_piece(&m->pieces, pc);

		/* Code that the parent compiled here after the fork hides the older name. */
		if (p && p->name >= mark.text_bytes)
			return false;
		if (p) {
			*ret_name = (const char *)m->text.bytes + p->name;
			*ret_start = p->start - p->before;
			return true;
		}
		mark = m->base_mark;
	}
	return false;
}

uint64_t perf_map_dropped(const struct perf_map *m)
{
	return m->dropped;
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
