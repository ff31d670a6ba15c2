/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_split.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

enum {
	MAX_ROWS = 1 << 19, /* units of a package */
	MAX_COLUMNS = 16, /* the formats define eight */
	/* Columns of a package's index (DWARF 5, 7.3.5.3; GNU's version 2 has the first three). */
	COLUMN_INFO = 1,
	COLUMN_ABBREV = 3,
	COLUMN_STR_OFFSETS = 6,
	COLUMN_RNGLISTS = 8, /* in version 5 only */
};

/* Offsets of one unit's contributions to the sections. */
struct row {
	uint64_t info, info_size;
	uint64_t abbrev, str_offsets, rnglists;
};

struct rows {
	struct row *items; /* sorted by `info` */
	size_t count, capacity;
};

/* ---- a package's index ---------------------------------------------------------------------- */

struct index_header {
	uint32_t version, columns, units, slots;
};

static bool read_index_header(struct cursor *c, struct index_header *ret_header)
{
	struct index_header h = { .version = cursor_u32(c) & UINT16_MAX };

	h.columns = cursor_u32(c);
	h.units = cursor_u32(c);
	h.slots = cursor_u32(c);
	*ret_header = h;
	return !c->bad && (h.version == 2 || h.version == 5) && h.columns &&
	       h.columns <= MAX_COLUMNS && h.units <= MAX_ROWS;
}

static void put_column(struct row *row, uint32_t version, uint32_t column, uint32_t offset)
{
	if (column == COLUMN_INFO)
		row->info = offset;
	else if (column == COLUMN_ABBREV)
		row->abbrev = offset;
	else if (column == COLUMN_STR_OFFSETS)
		row->str_offsets = offset;
	else if (column == COLUMN_RNGLISTS && version == 5)
		row->rnglists = offset;
}

static int by_info(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return x->info < y->info ? -1 : x->info > y->info;
}

/*
 * The index has a hash table (IDs, then row numbers), which we skip; the section of each column; a
 * row of offsets per unit; a row of sizes per unit.
 */
static int read_index(struct cursor c, struct rows *rows)
{
	struct index_header h;
	uint32_t columns[MAX_COLUMNS];
	struct cursor sizes;
	int err;

	if (!read_index_header(&c, &h))
		return -EBADMSG;
	cursor_skip(&c, (uint64_t)h.slots * (8 + 4));
	for (uint32_t i = 0; i < h.columns; i++)
		columns[i] = cursor_u32(&c);
	sizes = c;
	cursor_skip(&sizes, (uint64_t)h.units * h.columns * 4);
	err = array_reserve(rows->items, rows->capacity, h.units, MAX_ROWS);
	for (uint32_t unit = 0; unit < h.units && !err && !sizes.bad; unit++) {
		struct row *row = &rows->items[rows->count++];

		*row = (struct row){ 0 };
		for (uint32_t i = 0; i < h.columns; i++) {
			uint32_t size = cursor_u32(&sizes);

			put_column(row, h.version, columns[i], cursor_u32(&c));
			if (columns[i] == COLUMN_INFO)
				row->info_size = size;
		}
	}
	if (err || c.bad || sizes.bad)
		return err ? err : -EBADMSG;
	qsort(rows->items, rows->count, sizeof(*rows->items), by_info);
	return 0;
}

static const struct row *find_row(const struct rows *rows, uint64_t offset)
{
	size_t low = 0, high = rows->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rows->items[middle].info <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || offset - rows->items[low - 1].info >= rows->items[low - 1].info_size)
		return NULL;
	return &rows->items[low - 1];
}

/* ---- units and their skeletons -------------------------------------------------------------- */

/* In version 5 bases point after the tables' headers, but split units have no base attributes. */
static void set_bases(struct dwarf_unit *u, const struct row *row)
{
	bool wide = u->format.offset_size == 8;

	u->abbrev_off += row->abbrev;
	u->str_offsets_base = row->str_offsets;
	if (u->format.version < 5)
		return;
	u->str_offsets_base += wide ? 16 : 8;
	u->rnglists_base = row->rnglists + (wide ? 20 : 12);
	u->ranges_base = row->rnglists;
}

static void take_from_skeleton(struct dwarf_unit *u, const struct dwarf_unit *skeleton)
{
	u->low_pc = skeleton->low_pc;
	u->addr_base = skeleton->addr_base;
	if (u->format.version < 5)
		u->ranges_base = skeleton->split_ranges_base;
}

static int join(struct dwarf_split *s, struct dwarf_unit *u, const struct rows *rows,
	struct dwarf *program, const struct map *ids)
{
	static const struct row whole = { 0 };
	const struct row *row = rows ? find_row(rows, u->format.base) : &whole;
	uint64_t number;
	int err;

	u->is_split = true;
	if (!row)
		return 0;
	set_bases(u, row);
	err = dwarf_unit_open(&s->d, u);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (!u->has_dwo_id || !map_get(ids, u->dwo_id, &number) || program->units[number].elsewhere)
		return 0;
	take_from_skeleton(u, &program->units[number]);
	program->units[number].elsewhere = true;
	s->skeletons[u - s->d.units] = (uint32_t)number;
	return 0;
}

static int join_all(struct dwarf_split *s, const struct rows *rows, struct dwarf *program,
	const struct map *ids)
{
	int err = 0;

	s->skeletons = calloc(s->d.unit_count + 1, sizeof(*s->skeletons));
	if (!s->skeletons)
		return -ENOMEM;
	for (size_t i = 0; i < s->d.unit_count && !err; i++) {
		s->skeletons[i] = DWARF_NO_SKELETON;
		err = join(s, &s->d.units[i], rows, program, ids);
	}
	return err;
}

int dwarf_split_open(struct dwarf_split *s, const struct dwarf_split_source *source,
	struct dwarf *program, const struct map *ids)
{
	bool packed = cursor_left(&source->cu_index) > 0;
	struct rows rows = { 0 };
	int err = dwarf_init(&s->d, &source->sections, program->work);

	if (!err && packed)
		err = read_index(source->cu_index, &rows);
	if (err == -EBADMSG) {
		/* Without its index a package is useless: units have no contributions. */
		rows.count = 0;
		err = 0;
	}
	if (!err)
		err = join_all(s, packed ? &rows : NULL, program, ids);
	free(rows.items);
	return err;
}

void dwarf_split_deinit(struct dwarf_split *s)
{
	dwarf_walker_deinit(&s->walker);
	dwarf_names_deinit(&s->names);
	free(s->skeletons);
	dwarf_deinit(&s->d);
}

int dwarf_split_ids(struct dwarf *program, struct map *ids)
{
	for (size_t i = 0; i < program->unit_count; i++) {
		struct dwarf_unit *u = &program->units[i];
		int err = dwarf_unit_open(program, u);

		if (err == -ENOMEM)
			return err;
		if (!err && u->has_dwo_id)
			err = map_set(ids, u->dwo_id, i);
		if (err == -ENOMEM)
			return err;
	}
	return 0;
}
