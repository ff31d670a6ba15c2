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

enum {
	PROFILE_NUMBERS = 16, /* its fields, and one more */
	FEW_LINES = 8, /* of a location: functions that are inlined into one another */
	SAMPLE = 2,
};

struct unpack {
	struct arena *memory;
	struct cursor samples; /* from the first sample to the last */
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

/* Counts the lines; LINES: the first of them. */
static bool unpack_location_numbers(
	struct cursor c, MESSAGE(Location) * location, struct cursor lines[FEW_LINES])
{
	uint64_t n[6] = { 0 };
	struct wire_field f;

	while (wire_next(&c, &f)) {
		if (f.number - 1 >= 5)
			continue;
		if (f.wire != (f.number == 4 ? WIRE_BYTES : WIRE_NUMBER))
			return false;
		n[f.number] = f.value;
		if (f.number == 4 && location->n_line++ < FEW_LINES)
			lines[location->n_line - 1] = f.bytes;
	}
	location->id = n[1];
	location->mapping_id = n[2];
	location->address = n[3];
	location->is_folded = n[5] != 0;
	return !c.bad;
}

/* For a location with more than a few lines. */
static bool unpack_all_lines(struct unpack *u, struct cursor c, MESSAGE(Location) * location)
{
	struct wire_field f;
	size_t line = 0;

	while (wire_next(&c, &f)) {
		if (f.number == 4 && !unpack_line(u, f.bytes, &location->line[line++]))
			return false;
	}
	return true;
}

static bool unpack_few_lines(
	struct unpack *u, MESSAGE(Location) * location, const struct cursor lines[FEW_LINES])
{
	for (size_t i = 0; i < location->n_line; i++) {
		if (!unpack_line(u, lines[i], &location->line[i]))
			return false;
	}
	return true;
}

static bool unpack_location(struct unpack *u, struct cursor c, MESSAGE(Location) * *ret_location)
{
	MESSAGE(Location) *location = unpack_room(u, 1, sizeof(*location));
	struct cursor lines[FEW_LINES];

	if (!location)
		return false;
	*location = (MESSAGE(Location))PERFTOOLS__PROFILES__LOCATION__INIT;
	if (!unpack_location_numbers(c, location, lines))
		return false;
	location->line = unpack_room(u, location->n_line, sizeof(*location->line));
	*ret_location = location;
	if (!location->line)
		return false;
	return location->n_line <= FEW_LINES ? unpack_few_lines(u, location, lines)
					     : unpack_all_lines(u, c, location);
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

/* F is a sample, which began at BEGIN. */
static void unpack_note_sample(struct unpack *u, const uint8_t *begin, const struct wire_field *f)
{
	if (!cursor_left(&u->samples))
		u->samples = cursor_over(begin, 0);
	u->samples.end = f->bytes.end;
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
	for (const uint8_t *begin = c.at; wire_next(&c, &f); begin = c.at) {
		if (!unpack_add(u, &f, p))
			return false;
		if (f.number == SAMPLE)
			unpack_note_sample(u, begin, &f);
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

int pprof_unpack(const struct buffer *plain, struct arena *memory, MESSAGE(Profile) * *ret_message,
	struct cursor *ret_samples)
{
	const struct cursor c = cursor_over(plain->bytes, plain->size);
	struct unpack u = { .memory = memory, .samples = cursor_over(NULL, 0) };
	MESSAGE(Profile) *p = unpack_room(&u, 1, sizeof(*p));

	if (!p)
		return u.error;
	*p = (MESSAGE(Profile))PERFTOOLS__PROFILES__PROFILE__INIT;
	if (!unpack_count_profile(c, p))
		return -EBADMSG;
	if (!unpack_make_arrays(&u, p) || !unpack_fill_profile(&u, c, p))
		return u.error ?: -EBADMSG;
	*ret_message = p;
	*ret_samples = u.samples;
	return 0;
}
