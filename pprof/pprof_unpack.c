/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message is read twice: first its repeated fields are counted, then they are put into arrays of
 * that size.
 */
#include "pprof/pprof_unpack.h"

#include <errno.h>

#include "base/cursor.h"
#include "pprof/wire.h"

#define MESSAGE(name) Perftools__Profiles__##name

enum { PROFILE_NUMBERS = 16 /* its fields, and one more */ };

struct unpack {
	struct arena *memory;
	int error;
};

/* ---- fields --------------------------------------------------------------------------------- */

static void *unpack_room(struct unpack *u, size_t count, size_t size)
{
	void *room = arena_alloc(u->memory, count * size);

	if (!room)
		u->error = u->memory->error;
	return room;
}

/* The fields 1 to COUNT of a message, which are numbers; others are skipped. */
static bool unpack_numbers(struct cursor c, uint64_t *numbers, unsigned int count)
{
	struct wire_field f;

	while (wire_next(&c, &f)) {
		if (f.number - 1 >= count)
			continue;
		if (f.wire != WIRE_NUMBER)
			return false;
		numbers[f.number] = f.value;
	}
	return !c.bad;
}

/* How many numbers a repeated field has, packed or not. */
static bool unpack_count(const struct wire_field *f, size_t *count)
{
	if (f->wire == WIRE_NUMBER) {
		++*count;
		return true;
	}
	if (f->wire != WIRE_BYTES)
		return false;
	for (const uint8_t *at = f->bytes.at; at < f->bytes.end; at++)
		*count += *at < 0x80;
	return f->bytes.at == f->bytes.end || f->bytes.end[-1] < 0x80;
}

/* Appends them to NUMBERS, which has room. */
static bool unpack_append(struct wire_field *f, uint64_t *numbers, size_t *count)
{
	struct cursor *c = &f->bytes;

	if (f->wire == WIRE_NUMBER) {
		numbers[(*count)++] = f->value;
		return true;
	}
	while (c->at < c->end && !c->bad)
		numbers[(*count)++] = wire_number(c);
	return !c->bad;
}

/* ---- messages ------------------------------------------------------------------------------- */

static bool unpack_value_type(
	struct unpack *u, struct cursor c, MESSAGE(ValueType) * *ret_value_type)
{
	MESSAGE(ValueType) *type = *ret_value_type ?: unpack_room(u, 1, sizeof(*type));
	uint64_t n[3] = { 0 };

	if (!type)
		return false;
	/* Of a field that is not repeated, a second message adds to the first. */
	if (*ret_value_type) {
		n[1] = (uint64_t)type->type;
		n[2] = (uint64_t)type->unit;
	}
	*type = (MESSAGE(ValueType))PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	*ret_value_type = type;
	if (!unpack_numbers(c, n, 2))
		return false;
	type->type = (int64_t)n[1];
	type->unit = (int64_t)n[2];
	return true;
}

static bool unpack_mapping(struct unpack *u, struct cursor c, MESSAGE(Mapping) * *ret_mapping)
{
	MESSAGE(Mapping) *mapping = unpack_room(u, 1, sizeof(*mapping));
	uint64_t n[11] = { 0 };

	if (!mapping || !unpack_numbers(c, n, 10))
		return false;
	*mapping = (MESSAGE(Mapping))PERFTOOLS__PROFILES__MAPPING__INIT;
	mapping->id = n[1];
	mapping->memory_start = n[2];
	mapping->memory_limit = n[3];
	mapping->file_offset = n[4];
	mapping->filename = (int64_t)n[5];
	mapping->build_id = (int64_t)n[6];
	mapping->has_functions = n[7] != 0;
	mapping->has_filenames = n[8] != 0;
	mapping->has_line_numbers = n[9] != 0;
	mapping->has_inline_frames = n[10] != 0;
	*ret_mapping = mapping;
	return true;
}

static bool unpack_function(struct unpack *u, struct cursor c, MESSAGE(Function) * *ret_function)
{
	MESSAGE(Function) *function = unpack_room(u, 1, sizeof(*function));
	uint64_t n[6] = { 0 };

	if (!function || !unpack_numbers(c, n, 5))
		return false;
	*function = (MESSAGE(Function))PERFTOOLS__PROFILES__FUNCTION__INIT;
	function->id = n[1];
	function->name = (int64_t)n[2];
	function->system_name = (int64_t)n[3];
	function->filename = (int64_t)n[4];
	function->start_line = (int64_t)n[5];
	*ret_function = function;
	return true;
}

static bool unpack_line(struct unpack *u, struct cursor c, MESSAGE(Line) * *ret_line)
{
	MESSAGE(Line) *line = unpack_room(u, 1, sizeof(*line));
	uint64_t n[4] = { 0 };

	if (!line || !unpack_numbers(c, n, 3))
		return false;
	*line = (MESSAGE(Line))PERFTOOLS__PROFILES__LINE__INIT;
	line->function_id = n[1];
	line->line = (int64_t)n[2];
	line->column = (int64_t)n[3];
	*ret_line = line;
	return true;
}

static bool unpack_count_lines(struct cursor c, size_t *count)
{
	struct wire_field f;

	while (wire_next(&c, &f)) {
		if (f.number == 4 && f.wire != WIRE_BYTES)
			return false;
		*count += f.number == 4;
	}
	return !c.bad;
}

static bool unpack_fill_location(struct unpack *u, struct cursor c, MESSAGE(Location) * location)
{
	uint64_t n[6] = { 0 };
	struct wire_field f;
	size_t line = 0;

	while (wire_next(&c, &f)) {
		if (f.number == 4) {
			if (!unpack_line(u, f.bytes, &location->line[line++]))
				return false;
		} else if (f.number - 1 < 5) {
			if (f.wire != WIRE_NUMBER)
				return false;
			n[f.number] = f.value;
		}
	}
	location->id = n[1];
	location->mapping_id = n[2];
	location->address = n[3];
	location->is_folded = n[5] != 0;
	return true;
}

static bool unpack_location(struct unpack *u, struct cursor c, MESSAGE(Location) * *ret_location)
{
	MESSAGE(Location) *location = unpack_room(u, 1, sizeof(*location));

	if (!location)
		return false;
	*location = (MESSAGE(Location))PERFTOOLS__PROFILES__LOCATION__INIT;
	if (!unpack_count_lines(c, &location->n_line))
		return false;
	location->line = unpack_room(u, location->n_line, sizeof(*location->line));
	*ret_location = location;
	return location->line && unpack_fill_location(u, c, location);
}

static bool unpack_string(struct unpack *u, const struct cursor *c, char **ret_string)
{
	*ret_string = arena_strndup(u->memory, (const char *)c->at, cursor_left(c));
	if (!*ret_string)
		u->error = u->memory->error;
	return *ret_string != NULL;
}

/* ---- the profile ---------------------------------------------------------------------------- */

static bool unpack_count_profile(struct cursor c, MESSAGE(Profile) * p)
{
	size_t samples, *const counts[] = { NULL, &p->n_sample_type, &samples, &p->n_mapping,
		&p->n_location, &p->n_function, &p->n_string_table };
	struct wire_field f;
	bool good = true;

	while (good && wire_next(&c, &f)) {
		if (f.number == 13)
			good = unpack_count(&f, &p->n_comment);
		else if (f.number == 11 || f.number - 1 < 6)
			good = f.wire == WIRE_BYTES;
		else if (f.number - 1 < 15)
			good = f.wire == WIRE_NUMBER;
		if (f.number - 1 < 6)
			++*counts[f.number];
	}
	return good && !c.bad;
}

static bool unpack_make_arrays(struct unpack *u, MESSAGE(Profile) * p)
{
	p->sample_type = arena_zalloc(u->memory, p->n_sample_type * sizeof(void *));
	p->mapping = unpack_room(u, p->n_mapping, sizeof(void *));
	p->location = unpack_room(u, p->n_location, sizeof(void *));
	p->function = unpack_room(u, p->n_function, sizeof(void *));
	p->string_table = unpack_room(u, p->n_string_table, sizeof(void *));
	p->comment = unpack_room(u, p->n_comment, sizeof(*p->comment));
	if (!p->sample_type)
		u->error = u->memory->error;
	return !u->error;
}

/* Adds F to P, whose counts say what there is so far. */
static bool unpack_add(struct unpack *u, struct wire_field *f, MESSAGE(Profile) * p)
{
	switch (f->number) {
	case 1:
		return unpack_value_type(u, f->bytes, &p->sample_type[p->n_sample_type++]);
	case 3:
		return unpack_mapping(u, f->bytes, &p->mapping[p->n_mapping++]);
	case 4:
		return unpack_location(u, f->bytes, &p->location[p->n_location++]);
	case 5:
		return unpack_function(u, f->bytes, &p->function[p->n_function++]);
	case 6:
		return unpack_string(u, &f->bytes, &p->string_table[p->n_string_table++]);
	case 11:
		return unpack_value_type(u, f->bytes, &p->period_type);
	case 13:
		return unpack_append(f, (uint64_t *)p->comment, &p->n_comment);
	default:
		return true;
	}
}

static bool unpack_fill_profile(struct unpack *u, struct cursor c, MESSAGE(Profile) * p)
{
	uint64_t n[PROFILE_NUMBERS] = { 0 };
	struct wire_field f;

	p->n_sample_type = p->n_mapping = p->n_location = p->n_function = 0;
	p->n_string_table = p->n_comment = 0;
	while (wire_next(&c, &f)) {
		if (!unpack_add(u, &f, p))
			return false;
		if (f.wire == WIRE_NUMBER && f.number < PROFILE_NUMBERS)
			n[f.number] = f.value;
	}
	p->drop_frames = (int64_t)n[7];
	p->keep_frames = (int64_t)n[8];
	p->time_nanos = (int64_t)n[9];
	p->duration_nanos = (int64_t)n[10];
	p->period = (int64_t)n[12];
	p->default_sample_type = (int64_t)n[14];
	p->doc_url = (int64_t)n[15];
	return true;
}

int pprof_unpack(const struct buffer *plain, struct arena *memory, MESSAGE(Profile) * *ret_message)
{
	const struct cursor c = cursor_over(plain->bytes, plain->size);
	struct unpack u = { .memory = memory };
	MESSAGE(Profile) *p = unpack_room(&u, 1, sizeof(*p));

	if (!p)
		return u.error;
	*p = (MESSAGE(Profile))PERFTOOLS__PROFILES__PROFILE__INIT;
	if (!unpack_count_profile(c, p))
		return -EBADMSG;
	if (!unpack_make_arrays(&u, p) || !unpack_fill_profile(&u, c, p))
		return u.error ?: -EBADMSG;
	*ret_message = p;
	return 0;
}
