/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names follow OpenTelemetry's semantic conventions 1.37 and the profiles specification
 * (https://opentelemetry.io/docs/specs/otel/profiles/mappings/). A label without a name there keeps
 * ours: `goid`, `comm`, and all labels that users add.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/remote/otlp_internal.h"
#include "base/cleanup.h"

enum attribute_kind { KIND_TEXT, KIND_NUMBER, KIND_TRUE };

/* Compared bytewise, so without padding. */
struct attribute_record {
	uint32_t key, unit; /* index in `strings` */
	uint32_t kind;
	uint32_t text; /* index in `texts` */
	int64_t number;
};

/* Which message gets the attribute of a series label. */
enum place { PLACE_RESOURCE, PLACE_SAMPLE, PLACE_NOWHERE };

struct known_label {
	const char *label, *attribute;
	enum place place;
	bool number;
};

/* Labels of a series and, except for `place`, of a sample. */
static const struct known_label known_labels[] = {
	{ "__name__", "", PLACE_NOWHERE, false }, /* implied by the sample types */
	{ "service_name", "service.name", PLACE_RESOURCE, false },
	{ "node", "host.name", PLACE_RESOURCE, false },
	{ "executable", "process.executable.name", PLACE_RESOURCE, false },
#define SAMPLE_NUMBER(name, field, type, from, zero, series, meta, attribute, place) \
	{ #name, attribute, PLACE_##place, true },
#define SAMPLE_TEXT(name, field, bytes, from, series, meta, attribute, place) \
	{ #name, attribute, PLACE_##place, false },
#define PROCESS_TEXT(name, attribute, place) { #name, attribute, PLACE_##place, false },
#include "agent/sampler/profile/sample_labels.def"
};

/* In a series of a pod. Elsewhere labels of these names are anybody's. */
static const struct known_label pod_labels[] = {
	{ "namespace", "k8s.namespace.name", PLACE_RESOURCE, false },
	{ "pod", "k8s.pod.name", PLACE_RESOURCE, false },
	{ "pod_uid", "k8s.pod.uid", PLACE_RESOURCE, false },
	{ "container", "k8s.container.name", PLACE_RESOURCE, false },
};

static const struct known_label *find_in(
	const struct known_label *known, size_t count, const char *label)
{
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(known[i].label, label))
			return &known[i];
	}
	return NULL;
}

static const struct known_label *find_known(const char *label)
{
	return find_in(known_labels, ARRAY_SIZE(known_labels), label);
}

/* Of a label of the series. */
static const struct known_label *find_of_series(const struct labels *labels, const char *label)
{
	const struct known_label *known = find_known(label);

	if (known || !labels_get(labels, "pod"))
		return known;
	return find_in(pod_labels, ARRAY_SIZE(pod_labels), label);
}

static bool attribute_parse_number(const char *text, int64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoll(text, &end, 10);
	return !errno && end != text && !*end;
}

/* ---- sets ---------------------------------------------------------------------------------- */
static int attribute_add(
	struct otlp *o, struct attribute_set *set, const struct attribute_record *record)
{
	uint32_t number;
	int err;

	for (size_t i = 0; i < set->count; i++) {
		if (set->keys[i] == record->key)
			return 0;
	}
	if (set->count == OTLP_ATTRIBUTES_LIMIT)
		return -E2BIG;
	err = intern_bytes(&o->attributes, record, sizeof(*record), &number);
	if (err)
		return err;
	set->keys[set->count] = record->key;
	set->indices[set->count++] = (int32_t)number;
	return 0;
}

static int attribute_begin(
	struct otlp *o, const char *key, enum attribute_kind kind, struct attribute_record *record)
{
	int32_t index;
	int err = otlp_string(o, key, &index);

	if (err)
		return err;
	*record = (struct attribute_record){ .key = (uint32_t)index, .kind = kind };
	return 0;
}

int otlp_add_text(struct otlp *o, struct attribute_set *set, const char *key, const char *text)
{
	struct attribute_record record;
	int err = attribute_begin(o, key, KIND_TEXT, &record);

	if (!err)
		err = intern_string(&o->texts, text, &record.text);
	return err ? err : attribute_add(o, set, &record);
}

int otlp_add_number(struct otlp *o, struct attribute_set *set, const char *key, int64_t number,
	const char *unit)
{
	struct attribute_record record;
	int32_t index = 0;
	int err = attribute_begin(o, key, KIND_NUMBER, &record);

	if (!err)
		err = otlp_string(o, unit, &index);
	if (err)
		return err;
	record.unit = (uint32_t)index;
	record.number = number;
	return attribute_add(o, set, &record);
}

int otlp_add_true(struct otlp *o, struct attribute_set *set, const char *key)
{
	struct attribute_record record;
	int err = attribute_begin(o, key, KIND_TRUE, &record);

	return err ? err : attribute_add(o, set, &record);
}

int otlp_keep_attributes(
	struct otlp *o, const struct attribute_set *set, size_t *ret_count, int32_t **ret_indices)
{
	int32_t *indices = NULL;

	if (set->count) {
		indices = otlp_alloc(o, set->count, sizeof(*indices));
		if (!indices)
			return o->arena.error;
		memcpy(indices, set->indices, set->count * sizeof(*indices));
	}
	*ret_count = set->count;
	*ret_indices = indices;
	return 0;
}

/* ---- samples ------------------------------------------------------------------------------- */
int otlp_thread_attributes(struct otlp *o, struct attribute_set *set)
{
	const struct labels *labels = &o->payload->labels;
	int64_t number;
	int err = 0;

	for (size_t i = 0; i < labels->count && !err; i++) {
		const struct known_label *known = find_known(labels->items[i].name);
		const char *value = labels->items[i].value;

		if (!known || known->place != PLACE_SAMPLE)
			continue;
		if (known->number && attribute_parse_number(value, &number))
			err = otlp_add_number(o, set, known->attribute, number, "");
		else
			err = otlp_add_text(o, set, known->attribute, value);
	}
	return err;
}

/* Units in UCUM. `id` only keeps pprof tools from scaling the value. */
static const char *attribute_unit_of(const char *unit)
{
	static const char *const units[][2] = { { "id", "" }, { "bytes", "By" },
		{ "nanoseconds", "ns" }, { "microseconds", "us" }, { "milliseconds", "ms" },
		{ "seconds", "s" } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!strcmp(unit, units[i][0]))
			return units[i][1];
	}
	return unit;
}

/* Whether the resource has the same value for all samples. */
static bool is_of_series(const struct otlp *o, const char *key, const char *text)
{
	const char *value = labels_get(&o->payload->labels, key);

	return value && !strcmp(value, text);
}

static int add_label(
	struct otlp *o, const Perftools__Profiles__Label *label, struct attribute_set *set)
{
	const char *key = otlp_pprof_text(o, label->key), *text = otlp_pprof_text(o, label->str);
	const struct known_label *known = find_known(key);

	if (!*key || (label->str && is_of_series(o, key, text)))
		return 0;
	if (known && *known->attribute)
		key = known->attribute;
	return label->str ? otlp_add_text(o, set, key, text)
			  : otlp_add_number(o, set, key, label->num,
				    attribute_unit_of(otlp_pprof_text(o, label->num_unit)));
}

int otlp_sample_attributes(
	struct otlp *o, const Perftools__Profiles__Sample *sample, struct attribute_set *set)
{
	int err = 0;

	if (sample->n_label > OTLP_LABELS_LIMIT)
		return -E2BIG;
	for (size_t i = 0; i < sample->n_label && !err; i++)
		err = add_label(o, sample->label[i], set);
	return err;
}

/* ---- mappings and locations ---------------------------------------------------------------- */
/* A GNU build ID is hexadecimal; a Go build ID has slashes between its parts. */
static const char *build_id_key(const char *id)
{
	return id[strspn(id, "0123456789abcdefABCDEF")] ? "process.executable.build_id.go"
							: "process.executable.build_id.gnu";
}

int otlp_mapping_attributes(
	struct otlp *o, const Perftools__Profiles__Mapping *mapping, struct attribute_set *set)
{
	const char *id = otlp_pprof_text(o, mapping->build_id);
	const char *hash = o->file_hashes[mapping->id];
	int err = *id ? otlp_add_text(o, set, build_id_key(id), id) : 0;

	if (!err && hash)
		err = otlp_add_text(o, set, "process.executable.build_id.htlhash", hash);
	if (!err && mapping->has_functions)
		err = otlp_add_true(o, set, "pprof.mapping.has_functions");
	if (!err && mapping->has_filenames)
		err = otlp_add_true(o, set, "pprof.mapping.has_filenames");
	if (!err && mapping->has_line_numbers)
		err = otlp_add_true(o, set, "pprof.mapping.has_line_numbers");
	if (!err && mapping->has_inline_frames)
		err = otlp_add_true(o, set, "pprof.mapping.has_inline_frames");
	return err;
}

static bool attribute_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && !strcmp(text + length - end_length, end);
}

/* Deduced from the outermost function's source file: its compiler also compiled what is inlined. */
static const char *frame_type(const struct otlp *o, const Perftools__Profiles__Location *location)
{
	const Perftools__Profiles__Function *function;
	const char *file;

	if (location->address >> 63) /* on x86-64 and arm64 */
		return "kernel";
	if (!location->n_line)
		return "native";
	function = o->pprof->function[location->line[location->n_line - 1]->function_id - 1];
	file = otlp_pprof_text(o, function->filename);
	return attribute_ends_with(file, ".go")   ? "go"
	       : attribute_ends_with(file, ".rs") ? "rust"
						  : "native";
}

int otlp_location_attributes(
	struct otlp *o, const Perftools__Profiles__Location *location, struct attribute_set *set)
{
	return otlp_add_text(o, set, "profile.frame.type", frame_type(o, location));
}

/* ---- the resource -------------------------------------------------------------------------- */
static Otlp__AnyValue *text_value(struct otlp *o, const char *text)
{
	Otlp__AnyValue *value = otlp_alloc(o, 1, sizeof(*value));

	if (!value)
		return NULL;
	otlp__any_value__init(value);
	value->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	value->string_value = (char *)text;
	return value;
}

static Otlp__KeyValue *key_value(
	struct otlp *o, const struct known_label *known, const struct label *label)
{
	Otlp__KeyValue *pair = otlp_alloc(o, 1, sizeof(*pair));
	int64_t number;

	if (!pair)
		return NULL;
	otlp__key_value__init(pair);
	pair->key = known ? (char *)known->attribute : label->name;
	pair->value = text_value(o, label->value);
	if (!pair->value)
		return NULL;
	if (known && known->number && attribute_parse_number(label->value, &number)) {
		pair->value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		pair->value->int_value = number;
	}
	return pair;
}

/* The machine is the pod's node, too. */
static int add_node(struct otlp *o, const struct label *label, Otlp__Resource *resource)
{
	static const struct known_label node = { "node", "k8s.node.name", PLACE_RESOURCE, false };
	Otlp__KeyValue *pair;

	if (strcmp(label->name, "node") != 0 || !labels_get(&o->payload->labels, "pod"))
		return 0;
	pair = key_value(o, &node, label);
	if (!pair)
		return o->arena.error;
	resource->attributes[resource->n_attributes++] = pair;
	return 0;
}

int otlp_resource(struct otlp *o, Otlp__Resource *resource)
{
	const struct labels *labels = &o->payload->labels;
	int err = 0;

	resource->attributes = otlp_alloc(o, labels->count + 1, sizeof(*resource->attributes));
	if (!resource->attributes)
		return o->arena.error;
	for (size_t i = 0; i < labels->count && !err; i++) {
		const struct known_label *known = find_of_series(labels, labels->items[i].name);
		Otlp__KeyValue *pair;

		if (known && known->place != PLACE_RESOURCE)
			continue;
		pair = key_value(o, known, &labels->items[i]);
		if (!pair)
			return o->arena.error;
		resource->attributes[resource->n_attributes++] = pair;
		err = add_node(o, &labels->items[i], resource);
	}
	return err;
}

/* ---- the table ----------------------------------------------------------------------------- */
static int fill_attribute(struct otlp *o, uint32_t number, Otlp__KeyValueAndUnit *attribute)
{
	const struct attribute_record *record = (const void *)intern_text(&o->attributes, number);
	Otlp__AnyValue *value = text_value(o, "");

	if (!value)
		return o->arena.error;
	attribute->key_strindex = (int32_t)record->key;
	attribute->unit_strindex = (int32_t)record->unit;
	attribute->value = value;
	if (record->kind == KIND_TEXT) {
		value->string_value = (char *)intern_text(&o->texts, record->text);
	} else if (record->kind == KIND_NUMBER) {
		value->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		value->int_value = record->number;
	} else {
		value->value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
		value->bool_value = 1;
	}
	return 0;
}

int otlp_attribute_table(struct otlp *o, Otlp__ProfilesDictionary *dictionary)
{
	size_t count = o->attributes.count;
	Otlp__KeyValueAndUnit *attributes = otlp_alloc(o, count, sizeof(*attributes));
	int err = 0;

	dictionary->attribute_table = otlp_alloc(o, count, sizeof(*dictionary->attribute_table));
	if (!attributes || !dictionary->attribute_table)
		return o->arena.error;
	for (uint32_t i = 0; i < count && !err; i++) {
		otlp__key_value_and_unit__init(&attributes[i]);
		dictionary->attribute_table[i] = &attributes[i];
		err = i ? fill_attribute(o, i, &attributes[i]) : 0;
	}
	dictionary->n_attribute_table = count;
	return err;
}
