/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_abbrev.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_TABLES = 1 << 18,
	MAX_TABLE_BYTES = 16 << 20, /* of all cached tables; vmlinux has 50 MB, more is no faster */
	MAX_ABBREVS = 1 << 17, /* per table; large LTO units have a few thousand */
	MAX_ATTRIBUTES = 1 << 20, /* per table */
	MAX_SKIP_BYTES = 0x7fff,
	TABLE_STEPS = 256, /* of work, for any table */
};

static void dwarf_abbrevs_destroy(struct dwarf_abbrevs *t)
{
	if (!t)
		return;
	free(t->items);
	free(t->attributes);
	free(t->skips);
	free(t);
}

DEFINE_AUTO(dwarf_abbrevs);

static uint8_t role_of(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return DWARF_ROLE_FUNCTION;
	case DW_TAG_inlined_subroutine:
		return DWARF_ROLE_INLINED;
	case DW_TAG_namespace:
	case DW_TAG_module:
		return DWARF_ROLE_NAMESPACE;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return DWARF_ROLE_TYPE;
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
		return DWARF_ROLE_CODELESS;
	}
	/* Rust's enumerations have methods. Other languages' have none, but they are short. */
	return tag == DW_TAG_enumeration_type ? DWARF_ROLE_TYPE : DWARF_ROLE_OTHER;
}

static int add_skip(struct dwarf_abbrevs *t, uint16_t bytes, uint16_t form)
{
	struct dwarf_skip *skip;
	int err = array_reserve(
		t->skips, t->skip_capacity, t->skip_count + 1, (size_t)MAX_ATTRIBUTES * 2);

	if (err)
		return err;
	skip = &t->skips[t->skip_count++];
	*skip = (struct dwarf_skip){ .bytes = bytes, .form = form };
	return 0;
}

/* Merges values of known size: one skip step per value of unknown size. */
static int plan_skips(
	struct dwarf_abbrevs *t, struct dwarf_abbrev *a, const struct dwarf_format *format)
{
	const struct dwarf_attribute *attribute = t->attributes + a->attribute_first;
	uint32_t fixed = 0;
	int err = 0;

	a->skip_first = (uint32_t)t->skip_count;
	for (uint32_t i = 0; i < a->attribute_count && !err; i++, attribute++) {
		int size = dwarf_form_size(format, attribute->form);

		if (attribute->name == DW_AT_sibling && t->skip_count == a->skip_first) {
			a->sibling_at = fixed;
			a->sibling_form = attribute->form;
		}
		if (size >= 0)
			fixed += (uint32_t)size;
		if (size < 0 || fixed >= MAX_SKIP_BYTES) {
			err = add_skip(t, (uint16_t)fixed, size < 0 ? attribute->form : 0);
			fixed = 0;
		}
	}
	if (!err && fixed)
		err = add_skip(t, (uint16_t)fixed, 0);
	a->skip_count = (uint32_t)(t->skip_count - a->skip_first);
	return err;
}

static uint16_t fit_16(uint64_t number)
{
	return number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
}

static int read_attributes(struct dwarf_abbrevs *t, struct dwarf_abbrev *a, struct cursor *c)
{
	a->attribute_first = (uint32_t)t->attribute_count;
	for (;;) {
		uint64_t name = dwarf_uleb(c);
		uint64_t form = dwarf_uleb(c);
		int64_t implicit = form == DW_FORM_implicit_const ? cursor_sleb128(c) : 0;
		int err;

		if (c->bad)
			return -EBADMSG;
		if (!name && !form)
			break;
		err = array_reserve(t->attributes, t->attribute_capacity, t->attribute_count + 1,
			MAX_ATTRIBUTES);
		if (err)
			return err;
		t->attributes[t->attribute_count++] = (struct dwarf_attribute){
			.name = fit_16(name), .form = fit_16(form), .implicit = implicit
		};
		if (name == DW_AT_low_pc || name == DW_AT_ranges)
			a->has_code = true;
	}
	a->attribute_count = (uint32_t)(t->attribute_count - a->attribute_first);
	return 0;
}

static int read_abbrev(
	struct dwarf_abbrevs *t, uint64_t code, struct cursor *c, const struct dwarf_format *format)
{
	struct dwarf_abbrev *a;
	uint64_t tag = dwarf_uleb(c);
	int err = array_reserve(t->items, t->capacity, t->count + 1, MAX_ABBREVS);

	if (err)
		return err;
	a = &t->items[t->count];
	*a = (struct dwarf_abbrev){ .code = code, .tag = fit_16(tag), .role = role_of(tag) };
	a->children = cursor_u8(c) != 0;
	err = read_attributes(t, a, c);
	if (!err)
		err = plan_skips(t, a, format);
	if (err)
		return err;
	t->count++;
	t->dense = t->dense && code == t->count;
	return 0;
}

static int compare_codes(const void *left, const void *right)
{
	const struct dwarf_abbrev *a = left, *b = right;

	return (a->code > b->code) - (a->code < b->code);
}

const struct dwarf_abbrev *dwarf_abbrev_search(const struct dwarf_abbrevs *t, uint64_t code)
{
	const struct dwarf_abbrev key = { .code = code };

	return bsearch(&key, t->items, t->count, sizeof(key), compare_codes);
}

/* Allocates one element of each array, so that none is NULL. */
static struct dwarf_abbrevs *create_table(void)
{
	autocall(auto_dwarf_abbrevs_destroy) struct dwarf_abbrevs *t = calloc(1, sizeof(*t));

	if (!t || array_reserve(t->items, t->capacity, 1, MAX_ABBREVS) ||
		array_reserve(t->attributes, t->attribute_capacity, 1, MAX_ATTRIBUTES) ||
		array_reserve(t->skips, t->skip_capacity, 1, MAX_ATTRIBUTES))
		return NULL;
	t->dense = true;
	return take(t);
}

static int read_abbrevs(struct dwarf_abbrevs *t, struct cursor c, const struct dwarf_format *format,
	struct work *work)
{
	for (;;) {
		const uint8_t *start = c.at;
		uint64_t code = dwarf_uleb(&c);
		int err;

		if (c.bad)
			return -EBADMSG;
		if (!code)
			return 0;
		err = read_abbrev(t, code, &c, format);
		if (err)
			return err;
		if (!work_spend(work, (uint64_t)(c.at - start)))
			return -EBADMSG;
	}
}

/* A table over our limits is broken, too, so that only its units are lost, not the whole build. */
static int dwarf_abbrev_read_table(struct cursor c, const struct dwarf_format *format,
	struct work *work, struct dwarf_abbrevs **ret_table)
{
	autocall(auto_dwarf_abbrevs_destroy) struct dwarf_abbrevs *t = create_table();
	int err;

	if (!t)
		return -ENOMEM;
	err = read_abbrevs(t, c, format, work);
	if (err == -ENOMEM)
		return err;
	if (err) {
		dwarf_abbrevs_destroy(t);
		t = create_table();
		if (!t)
			return -ENOMEM;
		t->broken = true;
	}
	if (!t->dense)
		qsort(t->items, t->count, sizeof(*t->items), compare_codes);
	*ret_table = take(t);
	return 0;
}

void dwarf_abbrev_cache_init(struct dwarf_abbrev_cache *cache)
{
	*cache = (struct dwarf_abbrev_cache){ 0 };
	map_init(&cache->tables, MAX_TABLES);
}

void dwarf_abbrev_cache_deinit(struct dwarf_abbrev_cache *cache)
{
	uint64_t key, value;

	for (size_t i = 0; map_next(&cache->tables, &i, &key, &value);)
		dwarf_abbrevs_destroy((struct dwarf_abbrevs *)(uintptr_t)value);
	map_deinit(&cache->tables);
}

static size_t table_bytes(const struct dwarf_abbrevs *t)
{
	return sizeof(*t) + t->capacity * sizeof(*t->items) +
	       t->attribute_capacity * sizeof(*t->attributes) +
	       t->skip_capacity * sizeof(*t->skips);
}

static int drop_unpinned(struct dwarf_abbrev_cache *cache)
{
	struct dwarf_abbrevs *pinned = NULL;
	uint64_t key, value, pinned_key = 0;

	for (size_t i = 0; map_next(&cache->tables, &i, &key, &value);) {
		struct dwarf_abbrevs *t = (struct dwarf_abbrevs *)(uintptr_t)value;

		if (t == cache->pinned) {
			pinned = t;
			pinned_key = key;
		} else {
			dwarf_abbrevs_destroy(t);
		}
	}
	map_clear(&cache->tables);
	cache->bytes = pinned ? table_bytes(pinned) : 0;
	return pinned ? map_set_pointer(&cache->tables, pinned_key, pinned) : 0;
}

/* The sizes of forms depend on the offset size, and on whether the version is 2. */
static uint64_t dwarf_abbrev_key_of(uint64_t offset, const struct dwarf_format *format)
{
	return offset << 2 | (format->offset_size == 8) << 1 | (format->version == 2);
}

int dwarf_abbrevs_get(struct dwarf_abbrev_cache *cache, const struct cursor *section,
	uint64_t offset, const struct dwarf_format *format,
	const struct dwarf_abbrevs **ret_abbrevs)
{
	uint64_t key = dwarf_abbrev_key_of(offset, format);
	autocall(auto_dwarf_abbrevs_destroy) struct dwarf_abbrevs *t = NULL;
	struct cursor c = *section;
	int err;

	*ret_abbrevs = map_get_pointer(&cache->tables, key);
	if (*ret_abbrevs)
		return (*ret_abbrevs)->broken ? -EBADMSG : 0;
	if (!cursor_seek(&c, offset) || !work_spend(cache->work, TABLE_STEPS))
		return -EBADMSG;
	err = dwarf_abbrev_read_table(c, format, cache->work, &t);
	if (!err && (cache->bytes > MAX_TABLE_BYTES || cache->tables.count >= MAX_TABLES))
		err = drop_unpinned(cache);
	if (!err)
		err = map_set_pointer(&cache->tables, key, t);
	if (err)
		return err;
	cache->bytes += table_bytes(t);
	*ret_abbrevs = t;
	return take(t)->broken ? -EBADMSG : 0;
}
