/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, names, files and pc tables of a pclntab (runtime._func and related structures).
 *
 * A record is followed by its pcdata offsets and its funcdata: until 1.17 pointers, aligned to 8
 * and relocated; since 1.18 offsets from go.func.*, ~0 = none. A pc table is a sequence of (value
 * delta, code bytes) pairs that starts with value -1 at the function's entry; a value delta of 0
 * ends it, except in the first pair.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbolizer/indexer/go/gopclntab.h"

enum {
	MAX_NAME_BYTES = 1 << 16,
	MAX_PATH_BYTES = 4096,
	MAX_PCDATA = 64, /* kinds of pcdata in a record; 1.26 has 5 */
	MAX_RUNS = 1 << 24,
	PCDATA_INLINE = 2, /* index into the inline tree */
	FUNCDATA_INLINE = 3, /* the inline tree */
};

bool gopclntab_entry(
	const struct gopclntab *table, uint32_t number, uint64_t *ret_entry, uint32_t *ret_record)
{
	struct cursor c = table->functions;
	uint64_t size = table->format == GOPCLNTAB_1_16 ? 16 : 8;
	uint64_t entry;

	if (number > table->function_count || !cursor_seek(&c, number * size))
		return false;
	if (table->format == GOPCLNTAB_1_16) {
		if (!elf_image_word(table->image, table->functions_address + number * size, &entry))
			return false;
		cursor_skip(&c, 8);
		if (number < table->function_count)
			*ret_record = (uint32_t)cursor_u64(&c);
	} else {
		entry = table->base + cursor_u32(&c);
		if (number < table->function_count)
			*ret_record = cursor_u32(&c);
	}
	if (c.bad)
		return false;
	*ret_entry = entry;
	return true;
}

static uint64_t inline_tree(
	const struct gopclntab *table, struct cursor *record, uint32_t pcdata, uint32_t funcdata)
{
	uint64_t place;
	uint32_t offset;

	if (funcdata <= FUNCDATA_INLINE || pcdata <= PCDATA_INLINE)
		return 0;
	if (table->format == GOPCLNTAB_1_16) {
		place = table->functions_address + cursor_offset(record);
		place = (place + 7) & ~UINT64_C(7);
		return elf_image_word(table->image, place + FUNCDATA_INLINE * 8, &place) ? place
											 : 0;
	}
	cursor_skip(record, FUNCDATA_INLINE * 4);
	offset = cursor_u32(record);
	if (record->bad || offset == UINT32_MAX || !table->funcdata)
		return 0;
	return table->funcdata + offset;
}

static uint32_t pcdata_inline(struct cursor *record, uint32_t count)
{
	uint32_t offset = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t value = cursor_u32(record);

		if (i == PCDATA_INLINE)
			offset = value;
	}
	return offset;
}

int gopclntab_function(
	const struct gopclntab *table, uint32_t number, struct gopclntab_function *ret_function)
{
	struct gopclntab_function f = { 0 };
	struct cursor c = table->functions;
	uint32_t place = 0, unused, pcdata;
	uint8_t funcdata;

	if (number >= table->function_count || !gopclntab_entry(table, number, &f.entry, &place) ||
		!gopclntab_entry(table, number + 1, &f.next, &unused))
		return -EBADMSG;
	cursor_seek(&c, place);
	cursor_skip(&c, table->format == GOPCLNTAB_1_16 ? 8 : 4); /* the entry again */
	f.name = cursor_u32(&c);
	cursor_skip(&c, 8); /* args, deferreturn */
	f.pcsp = cursor_u32(&c);
	f.pcfile = cursor_u32(&c);
	f.pcln = cursor_u32(&c);
	pcdata = cursor_u32(&c);
	f.unit = cursor_u32(&c);
	if (table->format == GOPCLNTAB_1_20)
		f.start_line = cursor_u32(&c);
	cursor_skip(&c, 1); /* function id */
	f.flags = cursor_u8(&c);
	cursor_skip(&c, 1);
	funcdata = cursor_u8(&c);
	if (c.bad || pcdata > MAX_PCDATA || f.next < f.entry || f.next - f.entry > UINT32_MAX)
		return -EBADMSG;
	f.pcinline = pcdata_inline(&c, pcdata);
	f.inline_tree = inline_tree(table, &c, pcdata, funcdata);
	if (c.bad)
		return -EBADMSG;
	*ret_function = f;
	return 0;
}

static bool gopclntab_funcs_name_is(const char *name, const char *wanted)
{
	size_t length = strlen(wanted);

	if (strncmp(name, wanted, length) != 0)
		return false;
	return !name[length] || strcmp(name + length, ".abi0") == 0;
}

int gopclntab_function_named(
	const struct gopclntab *table, const char *name, struct gopclntab_function *ret_function)
{
	for (uint32_t i = 0; i < table->function_count; i++) {
		struct gopclntab_function f;
		const char *found;

		if (gopclntab_function(table, i, &f))
			continue;
		found = gopclntab_name(table, f.name);
		if (!found || !gopclntab_funcs_name_is(found, name))
			continue;
		*ret_function = f;
		return 0;
	}
	return -ENOENT;
}

/* Returns the string at OFFSET of TABLE; NULL unless it follows another's NUL. */
static const char *gopclntab_funcs_string_at(
	const struct cursor *table, uint32_t offset, size_t max)
{
	struct cursor c = *table;
	const char *text;

	if (!cursor_seek(&c, offset ? offset - 1 : 0))
		return NULL;
	if (offset && cursor_u8(&c) != 0)
		return NULL;
	if (cursor_left(&c) > max)
		c.end = c.at + max;
	text = cursor_string(&c);
	return text && *text ? text : NULL;
}

const char *gopclntab_name(const struct gopclntab *table, uint32_t offset)
{
	return gopclntab_funcs_string_at(&table->names, offset, MAX_NAME_BYTES);
}

const char *gopclntab_file(
	const struct gopclntab *table, uint32_t unit, int32_t file, uint32_t *ret_key)
{
	struct cursor c = table->units;
	const char *text;
	uint32_t offset;

	if (file < 0 || !cursor_seek(&c, ((uint64_t)unit + (uint32_t)file) * 4))
		return NULL;
	offset = cursor_u32(&c);
	if (c.bad || offset == UINT32_MAX)
		return NULL;
	text = gopclntab_funcs_string_at(&table->files, offset, MAX_PATH_BYTES);
	if (text)
		*ret_key = offset;
	return text;
}

static int32_t value_delta(uint32_t zigzag)
{
	return (int32_t)((zigzag >> 1) ^ (0 - (zigzag & 1)));
}

int gopclntab_runs_read(
	const struct gopclntab *table, uint32_t offset, uint32_t size, struct gopclntab_runs *runs)
{
	struct cursor c = table->pctab;
	uint64_t pc = 0;
	uint32_t value = UINT32_MAX; /* -1; deltas wrap as in the runtime */

	runs->count = 0;
	if (!offset)
		return 0;
	cursor_seek(&c, offset);
	while (pc < size) {
		uint64_t delta = cursor_uleb128(&c);
		uint64_t step;
		int r;

		if (!delta && runs->count)
			break;
		step = cursor_uleb128(&c);
		if (c.bad || !step || step > size || delta > UINT32_MAX)
			return -EBADMSG;
		pc += step * table->quantum;
		value += (uint32_t)value_delta((uint32_t)delta);
		r = array_reserve(runs->items, runs->capacity, runs->count + 1, MAX_RUNS);
		if (r)
			return r;
		runs->items[runs->count++] = (struct gopclntab_run){
			.end = pc < size ? (uint32_t)pc : size,
			.value = (int32_t)value,
		};
	}
	return 0;
}

void gopclntab_runs_deinit(struct gopclntab_runs *runs)
{
	free(runs->items);
	*runs = (struct gopclntab_runs){ 0 };
}

int32_t gopclntab_runs_value(const struct gopclntab_runs *runs, uint32_t pc)
{
	size_t low = 0, high = runs->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (runs->items[middle].end <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low < runs->count ? runs->items[low].value : -1;
}
