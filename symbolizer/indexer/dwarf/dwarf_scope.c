/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_scope.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

enum {
	MAX_SCOPES = 2 << 20, /* cached; over the limit all are evicted */
	MAX_SCANNED_UNITS = 1 << 19,
	MAX_DEPTH = 512,
	MAX_RESCANS = 4, /* times the size of .debug_info */
	NO_SCOPE = -1,
};

/* Offsets count from the unit's header. Entries in (low, high) are inside the scope. */
struct dwarf_scope {
	uint32_t low, high;
	int32_t parent; /* index, from the unit's first scope; NO_SCOPE = none */
};

struct scan {
	struct dwarf_scopes *s;
	const struct dwarf_unit *u;
	const struct dwarf_abbrevs *table;
	size_t first;
	unsigned int depth;
	int32_t open[MAX_DEPTH]; /* the scope around each level */
};

void dwarf_scopes_init(struct dwarf_scopes *s)
{
	*s = (struct dwarf_scopes){ 0 };
	map_init(&s->units, MAX_SCANNED_UNITS);
}

void dwarf_scopes_deinit(struct dwarf_scopes *s)
{
	free(s->items);
	map_deinit(&s->units);
}

static bool is_scope(const struct dwarf_abbrev *a)
{
	return a->role == DWARF_ROLE_FUNCTION || a->role == DWARF_ROLE_NAMESPACE ||
	       a->role == DWARF_ROLE_TYPE;
}

static int add_scope(struct scan *scan, uint32_t low, int32_t *ret_scope)
{
	struct dwarf_scopes *s = scan->s;
	int err = array_reserve(s->items, s->capacity, s->count + 1, (size_t)MAX_SCOPES * 2);

	if (err)
		return err;
	*ret_scope = (int32_t)(s->count - scan->first);
	s->items[s->count++] = (struct dwarf_scope){
		.low = low, .high = UINT32_MAX, .parent = scan->open[scan->depth]
	};
	return 0;
}

/* Scans an entry or the end of a level. -EBADMSG: nothing after it is readable. */
static int scan_entry(struct scan *scan, struct cursor *c)
{
	uint32_t low = (uint32_t)(cursor_offset(c) - scan->u->format.base);
	uint64_t code = dwarf_uleb(c);
	const struct dwarf_abbrev *a;
	int32_t scope = scan->open[scan->depth];
	int err = 0;

	if (!code) {
		if (!scan->depth)
			return -EBADMSG;
		if (scope != scan->open[--scan->depth])
			scan->s->items[scan->first + (size_t)scope].high = low;
		return 0;
	}
	a = dwarf_abbrev_find(scan->table, code);
	if (!a)
		return -EBADMSG;
	dwarf_abbrev_skip(scan->table, a, &scan->u->format, c);
	if (!a->children)
		return 0;
	if (scan->depth + 1 == MAX_DEPTH)
		return -EBADMSG;
	if (is_scope(a))
		err = add_scope(scan, low, &scope);
	scan->open[++scan->depth] = scope;
	return err;
}

static int dwarf_scope_scan_unit(
	struct dwarf_scopes *s, struct dwarf *d, const struct dwarf_unit *u)
{
	struct scan scan = { .s = s, .u = u, .first = s->count, .open = { NO_SCOPE } };
	struct cursor c = dwarf_unit_cursor(d, u, u->root);
	int err = dwarf_abbrevs_get(
		&d->abbrevs, &d->sections.abbrev, u->abbrev_off, &u->format, &scan.table);

	while (!err && cursor_left(&c))
		err = scan_entry(&scan, &c);
	if (err == -ENOMEM)
		return err;
	return map_set(
		&s->units, u->format.base, (uint64_t)scan.first << 32 | (s->count - scan.first));
}

/* Scans U unless its scopes are cached. *RET_WHERE is 0, no scopes, if that would cost too much. */
static int ensure_scanned(
	struct dwarf_scopes *s, struct dwarf *d, const struct dwarf_unit *u, uint64_t *ret_where)
{
	uint64_t size = u->end - u->format.base;
	uint64_t whole = (uint64_t)(d->sections.info.end - d->sections.info.start);
	int err;

	if (map_get(&s->units, u->format.base, ret_where))
		return 0;
	*ret_where = 0;
	if (size > UINT32_MAX || s->scanned_bytes > MAX_RESCANS * whole)
		return 0;
	if (s->count > MAX_SCOPES) {
		map_clear(&s->units);
		s->count = 0;
	}
	s->scanned_bytes += size;
	err = dwarf_scope_scan_unit(s, d, u);
	if (!err)
		map_get(&s->units, u->format.base, ret_where);
	return err;
}

int dwarf_scope_around(struct dwarf_scopes *s, struct dwarf *d, const struct dwarf_unit *u,
	uint64_t offset, uint64_t *ret_scope)
{
	uint64_t where;
	uint32_t at = (uint32_t)(offset - u->format.base);
	const struct dwarf_scope *scopes;
	size_t low = 0, high;
	int32_t found;
	int err = ensure_scanned(s, d, u, &where);

	if (err)
		return err;
	high = (uint32_t)where;
	if (!high) {
		*ret_scope = 0;
		return 0;
	}
	scopes = s->items + (where >> 32);
	while (low < high) { /* find the last scope that begins before the entry */
		size_t middle = low + (high - low) / 2;

		if (scopes[middle].low < at)
			low = middle + 1;
		else
			high = middle;
	}
	found = (int32_t)low - 1;
	while (found != NO_SCOPE && scopes[found].high <= at)
		found = scopes[found].parent;
	*ret_scope = found == NO_SCOPE ? 0 : u->format.base + scopes[found].low;
	return 0;
}
