/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding without a second copy of the profile. In Protocol Buffers, the concatenation of two
 * encoded messages decodes as their merge, with repeated fields appended. So each mapping,
 * function, location and sample is packed as a Profile that holds nothing else, and the encoded
 * Profiles are concatenated in the buffer. The bytes are the same as those of one large Profile
 * with its fields in this order.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "pprof/records.h"
#include "proto/profile.pb-c.h"

enum {
	/* 0.6 µs per sample (20,000 samples of 30 frames); level 6 takes 1.5 µs for 8 % less. */
	GZIP_LEVEL = 1,
	STRINGS_AT_ONCE = 128,
	COMMENTS_AT_ONCE = 128,
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

static int put_sample(const struct pprof *p, uint32_t id, struct buffer *out)
{
	const struct sample_record *record = (const void *)intern_text(&p->samples, id);
	const struct label_record *labels = (const void *)(record + 1);
	const uint32_t *ids = (const void *)(labels + record->label_count);
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *samples = &sample;
	Perftools__Profiles__Label label[PPROF_MAX_LABELS], *label_pointers[PPROF_MAX_LABELS];
	uint64_t locations[PPROF_MAX_FRAMES];

	for (uint32_t i = 0; i < record->location_count; i++)
		locations[i] = pprof_encoded_location(p, ids[i]);
	for (uint32_t i = 0; i < record->label_count; i++) {
		perftools__profiles__label__init(&label[i]);
		label[i].key = labels[i].key;
		label[i].str = labels[i].text;
		label[i].num = labels[i].number;
		label[i].num_unit = labels[i].unit;
		label_pointers[i] = &label[i];
	}
	sample.n_location_id = record->location_count;
	sample.location_id = locations;
	sample.n_value = p->type_count;
	sample.value = &p->values[(id - 1) * p->type_count];
	sample.n_label = record->label_count;
	sample.label = label_pointers;
	part.n_sample = 1;
	part.sample = &samples;
	return pprof_encode_put(out, &part);
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
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Location location = PERFTOOLS__PROFILES__LOCATION__INIT,
				      *locations = &location;
	Perftools__Profiles__Line lines[PPROF_MAX_LINES], *line_pointers[PPROF_MAX_LINES];
	uint32_t unnamed_id = record->mapping ? p->facts[record->mapping].unnamed_id : 0;

	for (uint32_t i = 0; i < record->line_count; i++) {
		perftools__profiles__line__init(&lines[i]);
		lines[i].function_id = record->lines[i].function;
		lines[i].line = record->lines[i].line;
		lines[i].column = record->lines[i].column;
		line_pointers[i] = &lines[i];
	}
	location.id = pprof_encoded_location(p, id);
	location.mapping_id =
		unnamed_id && !pprof_is_named(p, record) ? unnamed_id : record->mapping;
	location.address = record->address;
	location.n_line = record->line_count;
	location.line = line_pointers;
	part.n_location = 1;
	part.location = &locations;
	return pprof_encode_put(out, &part);
}

static int put_function(const struct pprof *p, uint32_t id, struct buffer *out)
{
	const struct function_record *record = (const void *)intern_text(&p->functions, id);
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	Perftools__Profiles__Function function = PERFTOOLS__PROFILES__FUNCTION__INIT,
				      *functions = &function;

	function.id = id;
	function.name = record->name;
	function.system_name = record->system_name;
	function.filename = record->file;
	function.start_line = record->start_line;
	part.n_function = 1;
	part.function = &functions;
	return pprof_encode_put(out, &part);
}

static int pprof_encode_put_strings(const struct pprof *p, struct buffer *out)
{
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	char *strings[STRINGS_AT_ONCE];
	int err;

	part.string_table = strings;
	for (uint32_t id = 0; id < p->strings.count;) {
		part.n_string_table = 0;
		while (id < p->strings.count && part.n_string_table < STRINGS_AT_ONCE)
			strings[part.n_string_table++] = (char *)intern_text(&p->strings, id++);
		err = pprof_encode_put(out, &part);
		if (err)
			return err;
	}
	return 0;
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
	err = put_all(p, &p->functions, NULL, put_function, out);
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
