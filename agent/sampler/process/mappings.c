/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted gap buffer, as in a text editor: programs and loaders map neighbours one after another
 * (mostly top down), so the gap is already where the next mapping goes and thousands of additions
 * cost no quadratic copying.
 *
 * The kernel reports no unmapping, so a mapping that is gone stays until another one replaces it;
 * the owner reads /proc again when the table is full of them.
 */
#include "agent/sampler/process/mappings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/process/modules.h"
#include "base/cleanup.h"
#include "base/intern.h"

enum {
	FIRST_CAPACITY = 8,
	MAX_PIECES = 3, /* in place of overlapped ones: left remainder, new one, right remainder */
};

struct mappings {
	uint32_t references;
	uint32_t count, capacity;
	uint32_t gap; /* the first free slot; capacity - count slots are free from here */
	uint64_t content; /* sum of the mappings' hashes */
	struct mapping *items;
};

struct mappings *mappings_create(void)
{
	struct mappings *m = calloc(1, sizeof(*m));

	if (m)
		m->references = 1;
	return m;
}

struct mappings *mappings_ref(struct mappings *m)
{
	m->references++;
	return m;
}

void mappings_unref(struct mappings *m)
{
	if (!m || --m->references > 0)
		return;
	free(m->items);
	free(m);
}

size_t mappings_count(const struct mappings *m)
{
	return m->count;
}

static struct mapping *item_at(const struct mappings *m, size_t number)
{
	return &m->items[number < m->gap ? number : number + (m->capacity - m->count)];
}

const struct mapping *mappings_at(const struct mappings *m, size_t number)
{
	return number < m->count ? item_at(m, number) : NULL;
}

uint64_t mappings_generation(const struct mappings *m)
{
	return m->content ? m->content : 1;
}

/* The number of the first mapping that ends after PC; the count when there is none. */
static size_t first_ending_after(const struct mappings *m, uint64_t pc)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (item_at(m, middle)->end > pc)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct mapping *mappings_find(const struct mappings *m, uint64_t pc)
{
	size_t number = first_ending_after(m, pc);
	const struct mapping *found = mappings_at(m, number);

	return found && found->start <= pc ? found : NULL;
}

static bool is_known_and_differs(uint64_t known, uint64_t seen)
{
	return known != 0 && seen != 0 && known != seen;
}

static bool is_seen_file(const struct file_id *file, const struct seen_mapping *seen)
{
	if (is_known_and_differs(file->mtime_ns, seen->file.mtime_ns) ||
		is_known_and_differs(file->size_bytes, seen->file.size_bytes))
		return false;
	if (seen->shown.inode != 0 && file->inode == seen->shown.inode &&
		file->device == seen->shown.device)
		return true;
	return file->inode == seen->file.inode && file->device == seen->file.device &&
	       !is_known_and_differs(file->generation, seen->file.generation);
}

bool mapping_is_seen(const struct mapping *m, const struct seen_mapping *seen)
{
	if (seen->vdso || m->module->kind == MODULE_VDSO)
		return seen->vdso && m->module->kind == MODULE_VDSO;
	if (m->module->kind == MODULE_FILE &&
		seen->start - seen->file_off != m->start - m->file_off)
		return false;
	return is_seen_file(&m->file, seen);
}

static uint64_t content_hash(const struct mapping *mapping)
{
	return hash_bytes(mapping, offsetof(struct mapping, file));
}

/*
 * Whether B merely continues A, so that the two can be one. File mappings are not joined: they keep
 * the bounds by which the kernel knows them (/proc/PID/map_files). The many small pieces of JIT
 * compilers are.
 */
static bool mappings_continues(const struct mapping *a, const struct mapping *b)
{
	return a->end == b->start && a->module == b->module && a->module->kind == MODULE_ANON &&
	       mapping_file_off(a, a->end) == b->file_off;
}

static bool contains(const struct mapping *outer, const struct mapping *inner)
{
	return outer->start <= inner->start && outer->end >= inner->end &&
	       outer->module == inner->module &&
	       mapping_file_off(outer, inner->start) == inner->file_off &&
	       !memcmp(&outer->file, &inner->file, sizeof(inner->file));
}

/* Copies the items into an array with room for CAPACITY, the gap at GAP. */
static struct mapping *copy_items(const struct mappings *m, size_t capacity, size_t gap)
{
	struct mapping *items = malloc(capacity * sizeof(*items));

	if (!items)
		return NULL;
	for (size_t i = 0; i < gap; i++)
		items[i] = *item_at(m, i);
	for (size_t i = gap; i < m->count; i++)
		items[capacity - m->count + i] = *item_at(m, i);
	return items;
}

static size_t capacity_for(size_t need, size_t capacity)
{
	if (need <= capacity)
		return capacity;
	return MAX(need, capacity + capacity / 2 + FIRST_CAPACITY);
}

/* Replaces *M by a private copy with room for NEED mappings. */
static int unshare(struct mappings **m, size_t need, size_t gap)
{
	size_t capacity = capacity_for(need, (*m)->count);
	struct mappings *copy = malloc(sizeof(*copy));
	struct mapping *items = copy_items(*m, capacity, gap);

	if (!copy || !items) {
		free(copy);
		free(items);
		return -ENOMEM;
	}
	*copy = (struct mappings){ .references = 1,
		.count = (*m)->count,
		.capacity = (uint32_t)capacity,
		.gap = (uint32_t)gap,
		.content = (*m)->content,
		.items = items };
	mappings_unref(*m);
	*m = copy;
	return 0;
}

static int mappings_grow(struct mappings *m, size_t need, size_t gap)
{
	size_t capacity = capacity_for(need, m->capacity);
	struct mapping *items = copy_items(m, capacity, gap);

	if (!items)
		return -ENOMEM;
	free(m->items);
	m->items = items;
	m->capacity = (uint32_t)capacity;
	m->gap = (uint32_t)gap;
	return 0;
}

static void move_gap(struct mappings *m, size_t gap)
{
	size_t size = m->capacity - m->count;

	if (gap < m->gap)
		memmove(&m->items[gap + size], &m->items[gap], (m->gap - gap) * sizeof(*m->items));
	else if (gap > m->gap)
		memmove(&m->items[m->gap], &m->items[m->gap + size],
			(gap - m->gap) * sizeof(*m->items));
	m->gap = (uint32_t)gap;
}

/* Makes *M private, with room for NEED mappings and its gap at GAP. */
static int mappings_prepare(struct mappings **m, size_t need, size_t gap)
{
	if ((*m)->references > 1)
		return unshare(m, need, gap);
	if (need > (*m)->capacity)
		return mappings_grow(*m, need, gap);
	move_gap(*m, gap);
	return 0;
}

/* Replaces the REMOVED mappings behind the gap with PIECES, for which there must be room. */
static void mappings_replace(
	struct mappings *m, size_t removed, const struct mapping *pieces, size_t piece_count)
{
	for (size_t i = 0; i < removed; i++) {
		m->content -= content_hash(item_at(m, m->gap));
		m->count--; /* widens the gap by the one behind it */
	}
	for (size_t i = 0; i < piece_count; i++) {
		m->items[m->gap++] = pieces[i];
		m->content += content_hash(&pieces[i]);
		m->count++;
	}
}

/* Appends PIECE, or joins it to the piece that it continues. */
static void append_piece(struct mapping *pieces, size_t *count, const struct mapping *piece)
{
	if (piece->start >= piece->end)
		return;
	if (*count > 0 && mappings_continues(&pieces[*count - 1], piece))
		pieces[*count - 1].end = piece->end;
	else
		pieces[(*count)++] = *piece;
}

/*
 * Makes the pieces that replace the mappings [FIRST, LAST) when MAPPING is added. They overlap or
 * touch it, so the left part of the first and the right part of the last may remain.
 */
static size_t make_pieces(const struct mappings *m, size_t first, size_t last,
	const struct mapping *mapping, struct mapping *pieces)
{
	size_t count = 0;

	if (first < last) {
		struct mapping left = *item_at(m, first);

		left.end = MIN(left.end, mapping->start);
		append_piece(pieces, &count, &left);
	}
	append_piece(pieces, &count, mapping);
	if (first < last) {
		struct mapping right = *item_at(m, last - 1);

		if (right.start < mapping->end && right.end > mapping->end) {
			right.file_off = mapping_file_off(&right, mapping->end);
			right.start = mapping->end;
		}
		if (right.start >= mapping->end)
			append_piece(pieces, &count, &right);
	}
	return count;
}

int mappings_add(struct mappings **m, const struct mapping *mapping)
{
	struct mapping pieces[MAX_PIECES];
	size_t first, last, count, need;
	int err;

	if (mapping->start >= mapping->end || !mapping->module)
		return -EINVAL;
	/* Includes touching neighbours, which may be joined with the new mapping. */
	first = first_ending_after(*m, mapping->start ? mapping->start - 1 : 0);
	for (last = first; last < (*m)->count; last++) {
		if (item_at(*m, last)->start > mapping->end)
			break;
		if (contains(item_at(*m, last), mapping))
			return 0;
	}
	count = make_pieces(*m, first, last, mapping, pieces);
	need = (*m)->count - (last - first) + count;
	if (need > MAPPINGS_LIMIT && need > (*m)->count)
		return -E2BIG;
	err = mappings_prepare(m, MAX(need, (*m)->count), first);
	if (err)
		return err;
	mappings_replace(*m, last - first, pieces, count);
	return 0;
}

static bool same_place(const struct mapping *a, const struct mapping *b)
{
	return a->module == b->module &&
	       mapping_file_off(a, b->start) == mapping_file_off(b, b->start);
}

struct mappings *mappings_common(const struct mappings *a, const struct mappings *b)
{
	struct mappings *common = mappings_create();
	size_t i = 0, j = 0;

	while (common && i < a->count && j < b->count) {
		const struct mapping *first = item_at(a, i), *second = item_at(b, j);
		struct mapping both = *first;

		both.start = MAX(first->start, second->start);
		both.end = MIN(first->end, second->end);
		both.file_off = mapping_file_off(first, both.start);
		if (both.start < both.end && same_place(first, second) &&
			mappings_add(&common, &both)) {
			mappings_unref(common);
			return NULL;
		}
		if (first->end < second->end)
			i++;
		else
			j++;
	}
	return common;
}
