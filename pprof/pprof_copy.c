/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/pprof_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define MESSAGE(name) Perftools__Profiles__##name

enum {
	MAX_WINDOWS = 1 << 22,
	MAX_COMPARED = 4096, /* mappings: each is compared with each */
};

/* ---- mappings ------------------------------------------------------------------------------- */

static bool pprof_copy_is_part(const struct pprof_read *from, const MESSAGE(Mapping) * part,
	const MESSAGE(Mapping) * whole)
{
	return part->memory_start >= whole->memory_start &&
	       part->memory_limit <= whole->memory_limit &&
	       part->file_offset - whole->file_offset == part->memory_start - whole->memory_start &&
	       !strcmp(pprof_read_text(from, part->filename),
		       pprof_read_text(from, whole->filename)) &&
	       !strcmp(pprof_read_text(from, part->build_id),
		       pprof_read_text(from, whole->build_id));
}

/*
 * Locations without a name are encoded in a mapping of their own, which covers a part of the file
 * that is another one in each profile (pprof.h). Here they are in the whole mapping again, or the
 * same address would be several locations.
 */
static void pprof_copy_find_wholes(struct pprof_copy *c)
{
	const MESSAGE(Profile) *p = c->from->message;

	for (size_t i = 0; i < p->n_mapping; i++)
		c->whole[i] = i;
	for (size_t i = 0; i < p->n_mapping && p->n_mapping <= MAX_COMPARED; i++) {
		for (size_t k = 0; k < p->n_mapping && !p->mapping[i]->has_functions; k++) {
			if (p->mapping[k]->has_functions &&
				pprof_copy_is_part(c->from, p->mapping[i], p->mapping[k]))
				c->whole[i] = k;
		}
	}
}

int pprof_copy_init(struct pprof_copy *c, struct pprof *to, const struct pprof_read *from)
{
	*c = (struct pprof_copy){ .to = to, .from = from };
	c->ids = calloc(from->message->n_location + 1, sizeof(*c->ids));
	c->whole = calloc(from->message->n_mapping + 1, sizeof(*c->whole));
	c->functions = calloc(from->message->n_function + 1, sizeof(*c->functions));
	c->mappings = calloc(from->message->n_mapping + 1, sizeof(*c->mappings));
	c->strings = calloc(from->message->n_string_table + 1, sizeof(*c->strings));
	if (!c->ids || !c->whole || !c->functions || !c->mappings || !c->strings) {
		pprof_copy_deinit(c);
		return -ENOMEM;
	}
	pprof_copy_find_wholes(c);
	return 0;
}

void pprof_copy_deinit(struct pprof_copy *c)
{
	free(take(c->ids));
	free(take(c->whole));
	free(take(c->functions));
	free(take(c->mappings));
	free(take(c->strings));
}

static int pprof_copy_mapping(
	const struct pprof_copy *c, const MESSAGE(Location) * location, uint64_t *ret_id)
{
	const bool whole = !c->source_only || !location->n_line;
	struct pprof_mapping content = { 0 };
	const MESSAGE(Mapping) * from;
	uint64_t index;
	int err;

	*ret_id = 0;
	if (!pprof_ids_get(&c->from->mappings, location->mapping_id, &index))
		return 0;
	*ret_id = whole ? c->mappings[index] : 0;
	if (*ret_id)
		return 0;
	from = c->from->message->mapping[c->whole[index]];
	content.file = pprof_read_text(c->from, from->filename);
	if (whole) {
		content.start = from->memory_start;
		content.limit = from->memory_limit;
		content.offset = from->file_offset;
		content.build_id = pprof_read_text(c->from, from->build_id);
	}
	err = pprof_mapping(c->to, &content, ret_id);
	if (!err && whole)
		c->mappings[index] = *ret_id;
	return err;
}

/* ---- strings -------------------------------------------------------------------------------- */

/* NUMBER was checked when the profile was read, or is that of a unit. */
static int pprof_copy_string(
	const struct pprof_copy *c, int64_t number, const char **ret_text, uint32_t *ret_string)
{
	int err = 0;

	*ret_text = pprof_read_text(c->from, number);
	*ret_string = 0;
	if (!**ret_text)
		return 0;
	if (!c->strings[number])
		err = pprof_string(c->to, *ret_text, &c->strings[number]);
	*ret_string = c->strings[number];
	return err;
}

/* ---- locations ------------------------------------------------------------------------------ */

static int pprof_copy_function(const struct pprof_copy *c, uint64_t index, struct pprof_line *line)
{
	const MESSAGE(Function) *function = c->from->message->function[index];
	int err;

	line->name = pprof_read_text(c->from, function->name);
	line->system_name = pprof_read_text(c->from, function->system_name);
	line->file = pprof_read_text(c->from, function->filename);
	line->start_line = function->start_line;
	line->nameless = pprof_is_nameless(line->name, line->system_name);
	if (c->line) {
		c->line(c->context, line);
		return 0;
	}
	err = pprof_copy_string(c, function->filename, &line->file, &line->file_string)
		      ?: pprof_function(c->to, line, &line->function);
	if (!err)
		c->functions[index] = line->function;
	return err;
}

static int pprof_copy_line(
	const struct pprof_copy *c, const MESSAGE(Line) * from, struct pprof_line *ret_line)
{
	uint64_t index;

	*ret_line = (struct pprof_line){ .line = from->line, .column = from->column };
	if (!pprof_ids_get(&c->from->functions, from->function_id, &index))
		return 0;
	ret_line->function = c->functions[index];
	return ret_line->function ? 0 : pprof_copy_function(c, index, ret_line);
}

static int pprof_copy_add(
	const struct pprof_copy *c, const MESSAGE(Location) * location, uint64_t *ret_id)
{
	struct pprof_line lines[PPROF_MAX_LINES];
	size_t count = MIN(location->n_line, (size_t)PPROF_MAX_LINES);
	uint64_t mapping;
	int err = pprof_copy_mapping(c, location, &mapping);

	for (size_t i = 0; i < count && !err; i++)
		err = pprof_copy_line(c, location->line[i], &lines[i]);
	return err ? err
		   : pprof_location(c->to, mapping, c->source_only && count ? 0 : location->address,
			     lines, count, ret_id);
}

/* What LINE changes is not kept by number. */
static int pprof_copy_functions(struct pprof_copy *c)
{
	struct pprof_line line;
	int err = 0;

	for (size_t i = 0; i < c->from->message->n_function && !c->line && !err; i++) {
		line = (struct pprof_line){ 0 };
		err = c->functions[i] ? 0 : pprof_copy_function(c, i, &line);
	}
	return err;
}

int pprof_copy_all(struct pprof_copy *c)
{
	const MESSAGE(Profile) *p = c->from->message;
	int err = pprof_copy_functions(c);

	for (size_t i = 0; i < p->n_location && !err; i++)
		err = c->ids[i] ? 0 : pprof_copy_add(c, p->location[i], &c->ids[i]);
	return err;
}

static int pprof_copy_location(struct pprof_copy *c, uint64_t index, uint64_t *ret_id)
{
	int err = 0;

	if (!c->ids[index])
		err = pprof_copy_add(c, c->from->message->location[index], &c->ids[index]);
	*ret_id = c->ids[index];
	return err;
}

int pprof_copy_locations(struct pprof_copy *c, const uint32_t *indexes, size_t count,
	uint64_t ret_stack[PPROF_MAX_FRAMES])
{
	int err = 0;

	for (size_t i = 0; i < MIN(count, (size_t)PPROF_MAX_FRAMES) && !err; i++)
		err = pprof_copy_location(c, indexes[i], &ret_stack[i]);
	return err;
}

int pprof_copy_stack(struct pprof_copy *c, const MESSAGE(Sample) * sample, size_t first,
	uint64_t ret_stack[PPROF_MAX_FRAMES], size_t *ret_depth)
{
	const size_t skipped = MIN(first, sample->n_location_id);
	const size_t depth = MIN(sample->n_location_id - skipped, (size_t)PPROF_MAX_FRAMES);
	int err = 0;

	for (size_t i = 0; i < depth && !err; i++) {
		uint64_t index = 0;

		pprof_ids_get(&c->from->locations, sample->location_id[skipped + i], &index);
		err = pprof_copy_location(c, index, &ret_stack[i]);
	}
	if (!err)
		*ret_depth = depth;
	return err;
}

int pprof_copy_label(
	struct pprof_copy *c, const struct pprof_sample_label *label, struct pprof_label *ret_label)
{
	int err;

	*ret_label = (struct pprof_label){ 0 };
	err = pprof_copy_string(c, label->key, &ret_label->key, &ret_label->key_string);
	if (err)
		return err;
	if (label->str)
		return pprof_copy_string(c, label->str, &ret_label->text, &ret_label->value_string);
	ret_label->number = label->num;
	return pprof_copy_string(c, label->num_unit, &ret_label->unit, &ret_label->value_string);
}

/* ---- times ---------------------------------------------------------------------------------- */

void pprof_span_init(struct pprof_span *span)
{
	*span = (struct pprof_span){ 0 };
	map_init(&span->windows, MAX_WINDOWS);
}

void pprof_span_deinit(struct pprof_span *span)
{
	map_deinit(&span->windows);
}

int pprof_span_add(struct pprof_span *span, const MESSAGE(Profile) * profile)
{
	int64_t duration_ns = MAX(profile->duration_nanos, 0), end_ns, covered_ns;
	uint64_t begin_ns = (uint64_t)profile->time_nanos, known = 0;
	int err;

	if (profile->time_nanos < 0 ||
		__builtin_add_overflow(profile->time_nanos, duration_ns, &end_ns))
		return 0;
	if (!span->windows.count || profile->time_nanos < span->begin_ns)
		span->begin_ns = profile->time_nanos;
	span->end_ns = MAX(span->end_ns, end_ns);
	map_get(&span->windows, begin_ns, &known);
	if (known >= (uint64_t)duration_ns && known)
		return 0;
	err = map_set(&span->windows, begin_ns, (uint64_t)duration_ns);
	if (!err && !__builtin_add_overflow(
			    span->covered_ns, duration_ns - (int64_t)known, &covered_ns))
		span->covered_ns = covered_ns;
	return err;
}
