/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuilds the profile with pprof/, so that ids run from 1 without gaps, strings are clean, has_*
 * flags are true and there is a period, whatever the file had. Servers are known to crash on less.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/upload.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/file_hash.h"
#include "base/intern.h"
#include "pprof/pprof.h"

enum {
	MAX_SERIES = 1024,
	/* Well below Pyroscope's limits (16,000 and 4 MiB), and within its burst of 2 MB. */
	PIECE_SAMPLES = 8000,
	PIECE_BYTES = 3 << 20, /* in the builder's memory; about a third when encoded */
	PIECE_LIMIT_BYTES = 64 << 20,
	TYPE_NAME_BYTES = 64,
};

/* Pyroscope cuts deeper stacks at the wrong end. */
static const size_t MAX_DEPTH = 1000;

struct splitter {
	const struct pprof_read *profile;
	const struct upload_series *series;
	upload_payload_fn *each;
	void *context;
	struct intern groups; /* values of comm; 0 = none */
	uint32_t *group_of; /* group of each sample, by index */
	char types[PPROF_MAX_TYPES][TYPE_NAME_BYTES];
	size_t type_count;
	struct pprof *piece; /* NULL = no piece begun */
	size_t piece_base_bytes; /* size of an empty piece */
	uint64_t *ids; /* in the piece, by location index; 0 = not added yet */
	uint64_t *mapping_ids; /* in the piece, by mapping index */
};

DEFINE_AUTO(pprof);

/* ---- groups -------------------------------------------------------------------------------- */
static const char *comm_of(const struct splitter *s, const Perftools__Profiles__Sample *sample)
{
	for (size_t i = 0; i < sample->n_label; i++) {
		if (!strcmp(pprof_read_text(s->profile, sample->label[i]->key), "comm"))
			return pprof_read_text(s->profile, sample->label[i]->str);
	}
	return "";
}

static int find_groups(struct splitter *s)
{
	const Perftools__Profiles__Profile *p = s->profile->message;
	bool together = labels_get(s->series->external, "service_name") != NULL;
	int err = 0;

	s->group_of = calloc(p->n_sample + 1, sizeof(*s->group_of));
	s->ids = calloc(p->n_location + 1, sizeof(*s->ids));
	s->mapping_ids = calloc(p->n_mapping + 1, sizeof(*s->mapping_ids));
	if (!s->group_of || !s->ids || !s->mapping_ids)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_sample && !err && !together; i++)
		err = intern_string(&s->groups, comm_of(s, p->sample[i]), &s->group_of[i]);
	return err;
}

/* ---- a piece's head ------------------------------------------------------------------------- */
/* Sanitizes the types, which become parts of PromQL names: `alloc-space` is refused. */
static void clean_types(struct splitter *s)
{
	const Perftools__Profiles__Profile *p = s->profile->message;

	s->type_count = p->n_sample_type;
	for (size_t i = 0; i < s->type_count; i++) {
		const char *name = pprof_read_text(s->profile, p->sample_type[i]->type);

		snprintf(s->types[i], sizeof(s->types[i]), "%s", *name ? name : "samples");
		for (char *c = s->types[i]; *c; c++) {
			if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_",
				    *c))
				*c = '_';
		}
	}
}

static const char *upload_payloads_unit_of(const struct splitter *s, size_t type)
{
	const char *unit =
		pprof_read_text(s->profile, s->profile->message->sample_type[type]->unit);

	return *unit ? unit : "count";
}

static int64_t upload_payloads_time_of(const struct splitter *s)
{
	const Perftools__Profiles__Profile *p = s->profile->message;

	return p->time_nanos > 0 ? p->time_nanos : s->series->time_ns;
}

/* The file's default type, else the last one, which is what tools show first. */
static const char *upload_payloads_default_type(const struct splitter *s)
{
	const Perftools__Profiles__Profile *p = s->profile->message;

	const char *wanted = pprof_read_text(s->profile, p->default_sample_type);

	/* Compared as strings: the string table may have duplicates. */
	for (size_t i = 0; *wanted && i < s->type_count; i++) {
		if (!strcmp(pprof_read_text(s->profile, p->sample_type[i]->type), wanted))
			return s->types[i];
	}
	return s->types[s->type_count - 1];
}

static int begin_piece(struct splitter *s)
{
	const Perftools__Profiles__Profile *p = s->profile->message;
	struct pprof_options options = {
		.type_count = s->type_count,
		.default_type = upload_payloads_default_type(s),
		.period_type = { s->types[s->type_count - 1],
			upload_payloads_unit_of(s, s->type_count - 1) },
		.period = p->period > 0 ? p->period : 1,
		.time_ns = upload_payloads_time_of(s),
		.duration_ns = MAX(p->duration_nanos, 0),
		.drop_frames = pprof_read_text(s->profile, p->drop_frames),
		.keep_frames = pprof_read_text(s->profile, p->keep_frames),
		.doc_url = pprof_read_text(s->profile, p->doc_url),
		.limit_bytes = PIECE_LIMIT_BYTES,
	};
	const char *type = p->period_type ? pprof_read_text(s->profile, p->period_type->type) : "";
	const char *unit = p->period_type ? pprof_read_text(s->profile, p->period_type->unit) : "";
	int err;

	for (size_t i = 0; i < s->type_count; i++)
		options.types[i] =
			(struct pprof_type){ s->types[i], upload_payloads_unit_of(s, i) };
	if (*type && *unit)
		options.period_type = (struct pprof_type){ type, unit };
	err = pprof_create(&options, &s->piece);
	if (err)
		return err;
	s->piece_base_bytes = pprof_bytes(s->piece);
	memset(s->ids, 0, p->n_location * sizeof(*s->ids));
	memset(s->mapping_ids, 0, p->n_mapping * sizeof(*s->mapping_ids));
	return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */
static int add_mapping(struct splitter *s, uint64_t id, uint64_t *ret_id)
{
	const Perftools__Profiles__Mapping *mapping;
	uint64_t index;
	int err;

	if (!id || !pprof_ids_get(&s->profile->mappings, id, &index)) {
		*ret_id = 0;
		return 0;
	}
	mapping = s->profile->message->mapping[index];
	err = pprof_mapping(s->piece,
		&(struct pprof_mapping){
			.start = mapping->memory_start,
			.limit = mapping->memory_limit,
			.offset = mapping->file_offset,
			.file = pprof_read_text(s->profile, mapping->filename),
			.build_id = pprof_read_text(s->profile, mapping->build_id),
		},
		ret_id);
	if (!err)
		s->mapping_ids[index] = *ret_id;
	return err;
}

static void copy_line(const struct splitter *s, const Perftools__Profiles__Line *line,
	struct pprof_line *ret_line)
{
	const Perftools__Profiles__Function *function;
	uint64_t index;

	*ret_line = (struct pprof_line){ .name = "", .system_name = "", .file = "" };
	if (!pprof_ids_get(&s->profile->functions, line->function_id, &index))
		return;
	function = s->profile->message->function[index];
	*ret_line = (struct pprof_line){
		.name = pprof_read_text(s->profile, function->name),
		.system_name = pprof_read_text(s->profile, function->system_name),
		.file = pprof_read_text(s->profile, function->filename),
		.line = line->line,
		.column = line->column,
		.start_line = function->start_line,
		.nameless = pprof_is_nameless(pprof_read_text(s->profile, function->name),
			pprof_read_text(s->profile, function->system_name)),
	};
}

static int upload_payloads_add_location(struct splitter *s, uint64_t id, uint64_t *ret_id)
{
	struct pprof_line lines[PPROF_MAX_LINES];
	const Perftools__Profiles__Location *location;
	uint64_t index = 0, mapping;
	size_t count;
	int err;

	pprof_ids_get(&s->profile->locations, id, &index);
	if (s->ids[index]) {
		*ret_id = s->ids[index];
		return 0;
	}
	location = s->profile->message->location[index];
	count = MIN(location->n_line, (size_t)PPROF_MAX_LINES);
	for (size_t i = 0; i < count; i++)
		copy_line(s, location->line[i], &lines[i]);
	err = add_mapping(s, location->mapping_id, &mapping);
	if (!err)
		err = pprof_location(
			s->piece, mapping, location->address, lines, count, &s->ids[index]);
	*ret_id = s->ids[index];
	return err;
}

static size_t copy_labels(const struct splitter *s, const Perftools__Profiles__Sample *sample,
	struct pprof_label labels[PPROF_MAX_LABELS])
{
	size_t count =
		s->series->sample_labels ? MIN(sample->n_label, (size_t)PPROF_MAX_LABELS) : 0;

	for (size_t i = 0; i < count; i++) {
		const Perftools__Profiles__Label *label = sample->label[i];

		labels[i] = (struct pprof_label){
			.key = pprof_read_text(s->profile, label->key),
			.text = label->str ? pprof_read_text(s->profile, label->str) : NULL,
			.number = label->num,
			.unit = pprof_read_text(s->profile, label->num_unit),
		};
	}
	return count;
}

static int upload_payloads_add_sample(struct splitter *s, const Perftools__Profiles__Sample *sample)
{
	size_t depth = MIN(sample->n_location_id, MAX_DEPTH);
	struct pprof_label labels[PPROF_MAX_LABELS];
	uint64_t locations[PPROF_MAX_FRAMES];
	size_t label_count = copy_labels(s, sample, labels);
	int err = 0;

	for (size_t i = 0; i < depth && !err; i++)
		err = upload_payloads_add_location(s, sample->location_id[i], &locations[i]);
	return err ? err
		   : pprof_sample(s->piece, locations, depth, sample->value, labels, label_count);
}

/* ---- payloads -------------------------------------------------------------------------------- */
/* The profile names that the pages of Pyroscope and Parca look for. */
static const char *upload_payloads_name_of(const struct splitter *s)
{
	static const struct {
		const char *type, *name;
	} names[] = {
		{ "cpu", "process_cpu" },
		{ "inuse_space", "memory" },
		{ "alloc_space", "memory" },
		{ "contentions", "mutex" },
		{ "goroutine", "goroutine" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		for (size_t k = 0; k < s->type_count; k++) {
			if (!strcmp(s->types[k], names[i].type))
				return names[i].name;
		}
	}
	return s->types[0];
}

static int fill_labels(const struct splitter *s, uint32_t group, struct labels *labels)
{
	const char *service = group ? intern_text(&s->groups, group) : s->series->service;
	int err = labels_copy(s->series->external, labels);

	if (!err && !labels_get(labels, "__name__"))
		err = labels_set(labels, "__name__", upload_payloads_name_of(s));
	if (!err && !labels_get(labels, "service_name"))
		err = labels_set(labels, "service_name", service);
	return err;
}

/* Rewrites comments on mappings: mapping ids differ in the piece. */
static int add_comment(struct splitter *s, const char *text)
{
	char comment[FILE_HASH_COMMENT_BYTES];
	uint64_t id, index;
	const char *hex;

	if (!file_hash_parse(text, &id, &hex))
		return pprof_comment(s->piece, text);
	if (!pprof_ids_get(&s->profile->mappings, id, &index) || !s->mapping_ids[index])
		return 0;
	file_hash_comment(s->mapping_ids[index], hex, comment);
	return pprof_comment(s->piece, comment);
}

static int add_comments(struct splitter *s)
{
	const Perftools__Profiles__Profile *p = s->profile->message;
	int err = 0;

	for (size_t i = 0; i < p->n_comment && !err; i++)
		err = add_comment(s, pprof_read_text(s->profile, p->comment[i]));
	return err;
}

static int upload_payloads_encode(const struct splitter *s, struct payload *payload)
{
	autocall(buffer_deinit) struct buffer plain;
	int err;

	buffer_init(&plain, PIECE_LIMIT_BYTES);
	buffer_init(&payload->pprof, PIECE_LIMIT_BYTES);
	err = pprof_encode(s->piece, false, &plain);
	if (!err)
		err = pprof_encode(s->piece, true, &payload->pprof);
	payload->raw_bytes = plain.size;
	payload->samples = pprof_sample_count(s->piece);
	payload->time_ns = upload_payloads_time_of(s);
	payload->duration_ns = MAX(s->profile->message->duration_nanos, 0);
	return err;
}

static int end_piece(struct splitter *s, uint32_t group)
{
	autocall(auto_pprof_destroy) struct pprof *piece = s->piece;
	autocall(payload_deinit) struct payload payload = { 0 };
	int err;

	if (!piece || !pprof_sample_count(piece)) {
		s->piece = NULL;
		return 0;
	}
	err = add_comments(s);
	if (!err)
		err = upload_payloads_encode(s, &payload);
	if (!err)
		err = fill_labels(s, group, &payload.labels);
	if (!err)
		err = s->each(s->context, &payload);
	s->piece = NULL;
	return err;
}

static bool is_full(const struct splitter *s)
{
	return pprof_sample_count(s->piece) >= PIECE_SAMPLES ||
	       pprof_bytes(s->piece) - s->piece_base_bytes >= PIECE_BYTES;
}

static int hand_out_group(struct splitter *s, uint32_t group)
{
	const Perftools__Profiles__Profile *p = s->profile->message;
	int err = 0;

	for (size_t i = 0; i < p->n_sample && !err; i++) {
		if (s->group_of[i] != group)
			continue;
		err = s->piece ? 0 : begin_piece(s);
		if (!err)
			err = upload_payloads_add_sample(s, p->sample[i]);
		if (!err && is_full(s))
			err = end_piece(s, group);
	}
	return err ? err : end_piece(s, group);
}

int upload_payloads(const struct pprof_read *profile, const struct upload_series *series,
	upload_payload_fn *each, void *context)
{
	struct splitter s = {
		.profile = profile, .series = series, .each = each, .context = context
	};
	int err = intern_init(&s.groups, MAX_SERIES, MAX_SERIES * LABEL_VALUE_BYTES);

	if (err)
		return err;
	if (profile->message->n_sample_type > PPROF_MAX_TYPES)
		err = -E2BIG;
	else
		clean_types(&s);
	if (!err)
		err = find_groups(&s);
	for (uint32_t group = 0; group < s.groups.count && !err; group++)
		err = hand_out_group(&s, group);
	pprof_destroy(s.piece);
	intern_deinit(&s.groups);
	free(s.group_of);
	free(s.ids);
	free(s.mapping_ids);
	return err;
}
