/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding without a second copy of the profile: its fields are written one after the other. Only
 * the few at its head are packed by the library.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "pprof/records.h"
#include "pprof/wire_out.h"
#include "proto/profile.pb-c.h"

enum {
	/* 0.6 µs per sample (20,000 samples of 30 frames); level 6 takes 1.5 µs for 8 % less. */
	GZIP_LEVEL = 1,
	COMMENTS_AT_ONCE = 128,
	/* Without repeated numbers and the records in it. */
	RECORD_MAX_BYTES = 12 * (WIRE_TAG_MAX_BYTES + WIRE_NUMBER_MAX_BYTES),
};

/* Fields, as in proto/profile.proto. */
enum {
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	SAMPLE_LOCATION_ID = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	LABEL_NUM_UNIT = 4,
	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,
	LINE_COLUMN = 3,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4,
	FUNCTION_START_LINE = 5,
};

#define PART_BYTES 4096ULL /* parts of a mapping are whole pages, as when the kernel splits one */

static int pprof_encode_put(struct buffer *out, const Perftools__Profiles__Profile *part)
{
	size_t size = perftools__profiles__profile__get_packed_size(part);
	void *room = buffer_room(out, size);

	if (!room)
		return out->error;
	out->size += perftools__profiles__profile__pack(part, room);
	return 0;
}

static Perftools__Profiles__ValueType type_of(const struct type_strings *type)
{
	Perftools__Profiles__ValueType message = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;

	message.type = type->type;
	message.unit = type->unit;
	return message;
}

static int put_head(const struct pprof *p, struct buffer *out)
{
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__ValueType types[PPROF_MAX_TYPES], *type_pointers[PPROF_MAX_TYPES];
	Perftools__Profiles__ValueType period_type;

	for (size_t i = 0; i < p->type_count; i++) {
		types[i] = type_of(&p->types[i]);
		type_pointers[i] = &types[i];
	}
	period_type = type_of(&p->period_type);
	part.n_sample_type = p->type_count;
	part.sample_type = type_pointers;
	part.time_nanos = p->time_ns;
	part.duration_nanos = p->duration_ns;
	part.period_type = &period_type;
	part.period = p->period;
	part.default_sample_type = p->default_type;
	part.drop_frames = p->drop_frames;
	part.keep_frames = p->keep_frames;
	part.doc_url = p->doc_url;
	return pprof_encode_put(out, &part);
}

static int pprof_encode_put_comments(const struct pprof *p, struct buffer *out)
{
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t comments[COMMENTS_AT_ONCE];
	int err;

	part.comment = comments;
	for (size_t i = 0; i < p->comment_count;) {
		part.n_comment = 0;
		while (i < p->comment_count && part.n_comment < COMMENTS_AT_ONCE)
			comments[part.n_comment++] = p->comments[i++];
		err = pprof_encode_put(out, &part);
		if (err)
			return err;
	}
	return 0;
}

static uint32_t pprof_encoded_location(const struct pprof *p, uint32_t id)
{
	return p->order.location_ids ? p->order.location_ids[id] : id;
}

static uint32_t pprof_encoded_function(const struct pprof *p, uint32_t id)
{
	return p->order.function_ids ? p->order.function_ids[id] : id;
}

static void pprof_encode_label(struct wire_out *w, const struct label_record *label)
{
	uint8_t *part = wire_begin(w, SAMPLE_LABEL);

	wire_put_field(w, LABEL_KEY, label->key);
	wire_put_field(w, LABEL_STR, label->text);
	wire_put_field(w, LABEL_NUM, (uint64_t)label->number);
	wire_put_field(w, LABEL_NUM_UNIT, label->unit);
	wire_end(w, part);
}

static void pprof_encode_stack(
	struct wire_out *w, const struct pprof *p, const uint32_t *ids, uint32_t depth)
{
	uint8_t *part;

	if (!depth)
		return;
	part = wire_begin(w, SAMPLE_LOCATION_ID);
	for (uint32_t i = 0; i < depth; i++)
		wire_put(w, pprof_encoded_location(p, ids[i]));
	wire_end(w, part);
}

static void pprof_encode_values(struct wire_out *w, const struct pprof *p, uint32_t sample)
{
	uint8_t *part;

	if (!p->type_count)
		return;
	part = wire_begin(w, SAMPLE_VALUE);
	for (size_t i = 0; i < p->type_count; i++)
		wire_put(w, (uint64_t)p->values[(sample - 1) * p->type_count + i]);
	wire_end(w, part);
}

static int put_sample(const struct pprof *p, uint32_t id, struct buffer *out)
{
	const struct sample_record *record = (const void *)intern_text(&p->samples, id);
	const struct label_record *labels =
		(const void *)intern_text(&p->label_sets, record->labels);
	const size_t label_count = intern_size(&p->label_sets, record->labels) / sizeof(*labels);
	uint32_t depth;
	const uint32_t *ids = pprof_stack_of(p, id, &depth);
	struct wire_out w;
	uint8_t *sample;

	if (!wire_out_init(&w, out,
		    (depth + p->type_count) * WIRE_NUMBER_MAX_BYTES +
			    (label_count + 1) * RECORD_MAX_BYTES))
		return out->error;
	sample = wire_begin(&w, PROFILE_SAMPLE);
	pprof_encode_stack(&w, p, ids, depth);
	pprof_encode_values(&w, p, id);
	for (size_t i = 0; i < label_count; i++)
		pprof_encode_label(&w, &labels[i]);
	wire_end(&w, sample);
	wire_out_done(&w);
	return 0;
}

/* ---- mappings ------------------------------------------------------------------------------- */

/*
 * Readers apply a mapping's flags to all of its locations: if a flag is missing, `go tool pprof`
 * symbolizes all of them again from a local file; if the flags are set, Pyroscope drops the
 * addresses of all of them. So unnamed locations get a mapping of their own. It covers only the
 * part of the file that they are in, because merging unifies mappings of equal size and offset.
 */
static void number_unnamed(struct pprof *p)
{
	uint32_t last = (uint32_t)p->mappings.count - 1;

	for (uint32_t id = 1; id < p->mappings.count; id++) {
		struct mapping_facts *facts = &p->facts[id];

		facts->unnamed_id = facts->named && facts->unnamed ? ++last : 0;
	}
}

static void part_of_unnamed(const struct mapping_record *whole, const struct mapping_facts *facts,
	Perftools__Profiles__Mapping *mapping)
{
	uint64_t begin = facts->first_unnamed & ~(PART_BYTES - 1);
	uint64_t end = (facts->last_unnamed | (PART_BYTES - 1)) + 1;

	/* Addresses outside of the mapping (as the kernel's may be): keep the whole range. */
	if (facts->first_unnamed < whole->start || facts->last_unnamed >= whole->limit)
		return;
	if (begin <= whole->start && (end >= whole->limit || end == 0)) {
		begin = facts->first_unnamed;
		end = facts->last_unnamed + 1;
	}
	mapping->memory_start = MAX(begin, whole->start);
	mapping->memory_limit = end && end < whole->limit ? end : whole->limit;
	mapping->file_offset = whole->offset + (mapping->memory_start - whole->start);
}

static int pprof_encode_put_part(const struct pprof *p, uint32_t id, bool named, struct buffer *out)
{
	const struct mapping_record *record = (const void *)intern_text(&p->mappings, id);
	const struct mapping_facts *facts = &p->facts[id];
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT,
				     *mappings = &mapping;

	mapping.id = id;
	mapping.memory_start = record->start;
	mapping.memory_limit = record->limit;
	mapping.file_offset = record->offset;
	mapping.filename = record->file;
	mapping.build_id = record->build_id;
	mapping.has_functions = named;
	mapping.has_filenames = named && !facts->lacks_file;
	mapping.has_line_numbers = named && !facts->lacks_line;
	mapping.has_inline_frames = mapping.has_line_numbers && !p->no_inlines;
	if (!named && facts->named) {
		mapping.id = facts->unnamed_id;
		part_of_unnamed(record, facts, &mapping);
	}
	part.n_mapping = 1;
	part.mapping = &mappings;
	return pprof_encode_put(out, &part);
}

static int put_mapping(const struct pprof *p, uint32_t id, struct buffer *out)
{
	return pprof_encode_put_part(p, id, p->facts[id].named, out);
}

static int put_unnamed_mapping(const struct pprof *p, uint32_t id, struct buffer *out)
{
	return p->facts[id].unnamed_id ? pprof_encode_put_part(p, id, false, out) : 0;
}

static int put_location(const struct pprof *p, uint32_t id, struct buffer *out)
{
	const struct location_record *record = (const void *)intern_text(&p->locations, id);
	uint32_t unnamed_id = record->mapping ? p->facts[record->mapping].unnamed_id : 0;
	uint8_t *location, *line;
	struct wire_out w;

	if (!wire_out_init(&w, out, RECORD_MAX_BYTES + record->line_count * RECORD_MAX_BYTES))
		return out->error;
	location = wire_begin(&w, PROFILE_LOCATION);
	wire_put_field(&w, LOCATION_ID, pprof_encoded_location(p, id));
	wire_put_field(&w, LOCATION_MAPPING_ID,
		unnamed_id && !pprof_is_named(p, record) ? unnamed_id : record->mapping);
	wire_put_field(&w, LOCATION_ADDRESS, record->address);
	for (uint32_t i = 0; i < record->line_count; i++) {
		line = wire_begin(&w, LOCATION_LINE);
		wire_put_field(
			&w, LINE_FUNCTION_ID, pprof_encoded_function(p, record->lines[i].function));
		wire_put_field(&w, LINE_LINE, record->lines[i].line);
		wire_put_field(&w, LINE_COLUMN, record->lines[i].column);
		wire_end(&w, line);
	}
	wire_end(&w, location);
	wire_out_done(&w);
	return 0;
}

static int put_function(const struct pprof *p, uint32_t id, struct buffer *out)
{
	const struct function_record *record = (const void *)intern_text(&p->functions, id);
	struct wire_out w;
	uint8_t *function;

	if (!wire_out_init(&w, out, RECORD_MAX_BYTES))
		return out->error;
	function = wire_begin(&w, PROFILE_FUNCTION);
	wire_put_field(&w, FUNCTION_ID, pprof_encoded_function(p, id));
	wire_put_field(&w, FUNCTION_NAME, record->name);
	wire_put_field(&w, FUNCTION_SYSTEM_NAME, record->system_name);
	wire_put_field(&w, FUNCTION_FILENAME, record->file);
	wire_put_field(&w, FUNCTION_START_LINE, record->start_line);
	wire_end(&w, function);
	wire_out_done(&w);
	return 0;
}

static int pprof_encode_put_string(const struct pprof *p, uint32_t id, struct buffer *out)
{
	const size_t size = intern_size(&p->strings, id);
	struct wire_out w;

	if (!wire_out_init(&w, out, RECORD_MAX_BYTES + size))
		return out->error;
	wire_put_bytes(&w, PROFILE_STRING_TABLE, intern_text(&p->strings, id), size);
	wire_out_done(&w);
	return 0;
}

static int pprof_encode_put_strings(const struct pprof *p, struct buffer *out)
{
	int err = 0;

	for (uint32_t id = 0; id < p->strings.count && !err; id++)
		err = pprof_encode_put_string(p, id, out);
	return err;
}

typedef int put_record_fn(const struct pprof *p, uint32_t id, struct buffer *out);

/* ORDER: of the ids; NULL = from 1 on. */
static int put_all(const struct pprof *p, const struct intern *table, const uint32_t *order,
	put_record_fn *put_record, struct buffer *out)
{
	int err = 0;

	for (uint32_t id = 1; id < table->count && !err; id++)
		err = put_record(p, order ? order[id - 1] : id, out);
	return err;
}

static int put_profile(struct pprof *p, struct buffer *out)
{
	int err;

	number_unnamed(p);
	err = put_head(p, out);
	if (err)
		return err;
	err = pprof_encode_put_comments(p, out);
	if (err)
		return err;
	err = put_all(p, &p->samples, p->order.samples, put_sample, out);
	if (err)
		return err;
	err = put_all(p, &p->mappings, NULL, put_mapping, out);
	if (!err)
		err = put_all(p, &p->mappings, NULL, put_unnamed_mapping, out);
	if (err)
		return err;
	err = put_all(p, &p->locations, p->order.locations, put_location, out);
	if (err)
		return err;
	err = put_all(p, &p->functions, p->order.functions, put_function, out);
	if (err)
		return err;
	return pprof_encode_put_strings(p, out);
}

int pprof_gzip(const struct buffer *raw, struct buffer *out)
{
	return gzip_deflate(raw->bytes, raw->size, GZIP_LEVEL, out);
}

static int put_compressed(struct pprof *p, struct buffer *out)
{
	autocall(buffer_deinit) struct buffer raw;
	int err;

	buffer_init(&raw, p->limit_bytes);
	err = put_profile(p, &raw);
	if (err)
		return err;
	return pprof_gzip(&raw, out);
}

int pprof_encode(struct pprof *p, bool gzip, struct buffer *out)
{
	size_t before = out->size;
	int err;

	err = gzip ? put_compressed(p, out) : put_profile(p, out);
	if (err)
		out->size = before;
	return err;
}
