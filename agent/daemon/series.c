/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/series.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/daemon/container_labels.h"
#include "agent/daemon/process_labels.h"
#include "agent/sampler/profile/sample_labels.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	KEYS_LIMIT = 1 << 20,
	KEYS_BYTES = 64 << 20,
	SERIES_LIMIT = 1 << 16,
	CAPPED = 1 << 30, /* in of_key: the series is without the sample's own labels */
	TEXTS_BYTES = 64 << 20,
	TEXT_LIMIT = 1 << 20, /* per label set */
	FIBER_VALUE_BYTES = ABI_FIBER_VALUE_BYTES + 4, /* with an ellipsis and a NUL */
};

_Static_assert(SAMPLE_LABEL_COUNT <= 32, "bits of series_options.sample_labels");

/*
 * The parts of a sample that determine its series: the process, which series labels the sample has,
 * and their values, then those of its fiber.
 */
struct series_key {
	uint8_t bytes[sizeof(struct profile_sample) + ABI_FIBER_LABELS * FIBER_VALUE_BYTES];
	size_t size;
};

/* The series labels of SAMPLE, as in series_options.sample_labels: others its type does not have.
 */
static uint32_t series_labels_of(const struct series *s, const struct profile_sample *sample)
{
	if (!sample_types_have(s->types, sample->type))
		return 0;
	return s->options->sample_labels & s->types->of[sample->type].labels;
}

static void key_append_bytes(struct series_key *key, const void *bytes, size_t size)
{
	memcpy(key->bytes + key->size, bytes, size);
	key->size += size;
}

/* Bytes after a text's NUL are not part of it: strncpy() zeroes them. */
static void key_append_label(struct series_key *key, const struct sample_label *label,
	const struct profile_sample *sample)
{
	char text[sizeof(key->bytes)];

	if (!label->is_text) {
		key_append_bytes(key, (const uint8_t *)sample + label->offset, label->size);
		return;
	}
	strncpy(text, sample_label_text(label, sample), label->size);
	key_append_bytes(key, text, label->size);
}

static void series_fiber_values(const struct series *s, const struct profile_sample *sample,
	const char *ret_values[ABI_FIBER_LABELS])
{
	const struct profile_fiber fiber = profile_fiber_at(s->profile, sample->fiber);

	fiber_keys_values(&s->options->fiber_keys, &fiber, ret_values);
}

static struct series_key series_key_of(const struct series *s, const struct profile_sample *sample)
{
	const uint32_t labels = series_labels_of(s, sample);
	const char *values[ABI_FIBER_LABELS];
	struct series_key key;

	key.size = 0;
	key_append_bytes(&key, &sample->process, sizeof(sample->process));
	key_append_bytes(&key, &labels, sizeof(labels));
	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		if (labels >> i & 1)
			key_append_label(&key, &sample_labels[i], sample);
	}
	series_fiber_values(s, sample, values);
	for (size_t i = 0; i < s->options->fiber_keys.count; i++)
		key_append_bytes(&key, values[i], strnlen(values[i], FIBER_VALUE_BYTES - 1) + 1);
	return key;
}

/* ---- labels --------------------------------------------------------------------------------- */

static int set_number(struct labels *labels, const char *name, uint64_t number)
{
	char text[24] = "";

	if (number)
		snprintf(text, sizeof(text), "%" PRIu64, number);
	return labels_set(labels, name, text);
}

static int set_external(const struct series *s, struct labels *labels)
{
	const struct labels *external = s->options->external;
	int err = labels_set(labels, "node", s->options->node);

	for (size_t i = 0; !err && i < external->count; i++)
		err = labels_set(labels, external->items[i].name, external->items[i].value);
	return err;
}

/* SAMPLE NULL: removes NAME. */
static int set_sample_label(const struct sample_label *label, const char *name,
	const struct profile_sample *sample, struct labels *labels)
{
	if (!sample)
		return labels_set(labels, name, "");
	if (label->is_text)
		return labels_set(labels, name, sample_label_text(label, sample));
	return set_number(labels, name, sample_label_value(label, sample));
}

/* These names are reserved for samples: an external label with one of them is removed. */
static int set_sample_labels(
	const struct series *s, const struct profile_sample *thread, struct labels *labels)
{
	const uint32_t had = thread ? series_labels_of(s, thread) : 0;
	int err = 0;

	for (size_t i = 0; !err && i < SAMPLE_LABEL_COUNT; i++) {
		const struct sample_label *label = &sample_labels[i];
		const struct profile_sample *from = had >> i & 1 ? thread : NULL;

		if (!label->is_series_label)
			continue;
		err = set_sample_label(label, label->name, from, labels);
		if (!err && label->meta)
			err = set_sample_label(label, label->meta, from, labels);
	}
	return err;
}

/* As for those of samples. */
static int set_fiber_labels(
	const struct series *s, const struct profile_sample *thread, struct labels *labels)
{
	const struct fiber_keys *keys = &s->options->fiber_keys;
	const char *values[ABI_FIBER_LABELS];
	int err = 0;

	if (thread)
		series_fiber_values(s, thread, values);
	for (size_t i = 0; !err && i < keys->count; i++)
		err = labels_set(labels, keys->of[i].name, thread ? values[i] : "");
	return err;
}

static int series_add_meta(
	const struct series *s, const struct process_facts *p, struct labels *labels)
{
	struct symbolized_program program;
	bool known = p->program && symbolize_program(s->options->symbolize, p->program, &program);

	return process_labels_meta(p, known ? &program : NULL, s->options->environment, labels);
}

/* NULL: the process is in no container, or no runtime has told of it, or it tells of another pod's.
 */
static const struct container_facts *series_container(
	struct series *s, const struct process_facts *p)
{
	const struct metadata_view *containers = s->options->containers;
	const struct container_facts *facts;

	if (!containers || !p || !metadata_can_know(containers, p->container_id))
		return NULL;
	facts = metadata_view_find(containers, p->container_id);
	if (facts && container_is_of_pod(facts, p->pod_uid))
		return facts;
	metrics_add(s->options->metrics,
		facts ? METRIC_METADATA_OTHER_POD : METRIC_METADATA_UNKNOWN, 1);
	s->missed_container = true;
	return NULL;
}

static int series_add_container_meta(
	const struct series *s, const struct container_facts *container, struct labels *labels)
{
	uint64_t cut = 0;
	int err = container_labels_meta(container, s->options->node, labels, &cut);

	metrics_add(s->options->metrics, METRIC_METADATA_LABELS_CUT, cut);
	return err;
}

/* What a series is made of; each may be NULL. */
struct series_origin {
	const struct process_facts *process;
	const struct container_facts *container;
	const struct profile_sample *thread;
};

/* Only rules use the labels that need /proc. */
static int collect_labels(
	const struct series *s, const struct series_origin *from, struct labels *labels)
{
	const bool rules = s->options->relabel != NULL;
	int err = set_external(s, labels);

	if (!err && from->process)
		err = process_labels(from->process, labels);
	if (!err && from->container)
		err = container_labels(from->container, labels);
	if (!err && from->process && rules)
		err = series_add_meta(s, from->process, labels);
	if (!err && from->container && rules)
		err = series_add_container_meta(s, from->container, labels);
	if (!err)
		err = set_sample_labels(s, from->thread, labels);
	return err ? err : set_fiber_labels(s, from->thread, labels);
}

static bool is_required(const char *name)
{
	return !strcmp(name, "__name__") || !strcmp(name, "service_name");
}

static void remove_internal(struct labels *labels)
{
	for (size_t i = labels->count; i-- > 0;) {
		const char *name = labels->items[i].name;

		if (!strncmp(name, "__", 2) && strcmp(name, "__name__"))
			(void)labels_set(labels, name, "");
	}
}

/* Removes the last by name, except the labels that every series needs. */
static void keep_to_limit(const struct series *s, struct labels *labels)
{
	for (size_t i = labels->count; i-- > 0 && labels->count > SERIES_LABELS_LIMIT;) {
		if (is_required(labels->items[i].name))
			continue;
		(void)labels_set(labels, labels->items[i].name, "");
		metrics_add(s->options->metrics, METRIC_SERIES_LABELS_CUT, 1);
	}
}

static int name_it(const struct series_origin *from, struct labels *labels)
{
	char service[LABEL_VALUE_BYTES + 1] = "unknown";
	int err = 0;

	if (!labels_get(labels, "__name__"))
		err = labels_set(labels, "__name__", "process_cpu");
	if (err || labels_get(labels, "service_name"))
		return err;
	if (from->container && container_labels_service(from->container, service, sizeof(service)))
		return labels_set(labels, "service_name", service);
	if (from->process)
		process_labels_service(from->process, service, sizeof(service));
	return labels_set(labels, "service_name", service);
}

/* *RET_KEEP is false if a rule drops the series. */
static int make_labels(const struct series *s, const struct series_origin *from,
	struct labels *labels, bool *ret_keep)
{
	int err = collect_labels(s, from, labels);

	*ret_keep = true;
	if (!err && s->options->relabel)
		err = relabel_apply(s->options->relabel, labels, ret_keep);
	if (err || !*ret_keep)
		return err;
	remove_internal(labels);
	err = name_it(from, labels);
	keep_to_limit(s, labels);
	return err;
}

/* ---- series --------------------------------------------------------------------------------- */

static int series_write_text(const struct labels *labels, struct buffer *out)
{
	for (size_t i = 0; i < labels->count; i++) {
		const struct label *label = &labels->items[i];

		(void)buffer_append(out, label->name, strlen(label->name) + 1);
		(void)buffer_append(out, label->value, strlen(label->value) + 1);
	}
	return out->error;
}

/* Moves LABELS into S if they are a new series. */
static int series_number_of(struct series *s, struct labels *labels, uint32_t *ret_number)
{
	autocall(buffer_deinit) struct buffer text;
	autofree struct labels *kept = malloc(sizeof(*kept));
	const size_t known = s->texts.count;
	uint32_t number;
	int err = kept ? 0 : -ENOMEM;

	buffer_init(&text, TEXT_LIMIT);
	if (!err)
		err = array_reserve(s->labels, s->label_capacity, known + 1, SERIES_LIMIT + 1);
	if (!err)
		err = series_write_text(labels, &text);
	if (!err)
		err = intern_bytes(&s->texts, text.bytes, text.size, &number);
	if (err)
		return err;
	if (number == known) {
		*kept = *labels;
		*labels = (struct labels){ 0 };
		s->labels[number] = take(kept);
	}
	*ret_number = number;
	return 0;
}

/*
 * Finds or creates the series of a sample of PROCESS; 0 = none. THREAD: the sample if its own
 * labels count, else NULL.
 */
static int find_series(struct series *s, uint32_t process, const struct profile_sample *thread,
	uint32_t *ret_number)
{
	const struct process_facts *p = window_processes_find(s->processes, process);
	const struct series_origin from = { p, series_container(s, p), thread };
	autocall(labels_deinit) struct labels labels = { 0 };
	bool keep;
	int err = make_labels(s, &from, &labels, &keep);

	if (err == -ENOMEM)
		return err;
	if (err) {
		metrics_add(s->options->metrics, METRIC_SERIES_DROPPED, 1);
		*ret_number = 0;
		return 0;
	}
	*ret_number = 0;
	return keep ? series_number_of(s, &labels, ret_number) : 0;
}

static bool has_series_label(const struct series *s, const struct profile_sample *sample)
{
	const uint32_t labels = series_labels_of(s, sample);
	const char *values[ABI_FIBER_LABELS];

	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		const struct sample_label *label = &sample_labels[i];

		if (!(labels >> i & 1))
			continue;
		if (label->is_text ? *sample_label_text(label, sample) != 0
				   : sample_label_value(label, sample) != 0)
			return true;
	}
	series_fiber_values(s, sample, values);
	for (size_t i = 0; i < s->options->fiber_keys.count; i++)
		if (*values[i])
			return true;
	return false;
}

/* Over the limit, a sample goes into its process's series: *RET_NUMBER has CAPPED then. */
static int find_within_limit(
	struct series *s, const struct profile_sample *sample, uint32_t *ret_number)
{
	int err;

	if (!has_series_label(s, sample) || series_count(s) < s->options->limit)
		return find_series(s, sample->process, sample, ret_number);
	err = find_series(s, sample->process, NULL, ret_number);
	*ret_number |= CAPPED;
	return err;
}

static void series_count_capped(struct series *s, uint32_t key, const struct profile_sample *sample)
{
	if (s->of_key[key] & CAPPED)
		metrics_add(s->options->metrics, METRIC_SERIES_CAPPED, sample->count);
}

static int series_add_sample(struct series *s, const struct profile_sample *sample)
{
	struct series_key key = series_key_of(s, sample);
	size_t known = s->keys.count;
	uint32_t number, series = 0;
	int err = intern_bytes(&s->keys, key.bytes, key.size, &number);

	if (!err && number < known)
		series_count_capped(s, number, sample);
	if (err || number < known)
		return err;
	err = find_within_limit(s, sample, &series);
	if (!err)
		err = array_reserve(s->of_key, s->key_capacity, (size_t)number + 1, KEYS_LIMIT + 1);
	if (!err) {
		s->of_key[number] = series;
		s->key_count = (size_t)number + 1;
		series_count_capped(s, number, sample);
	}
	return err;
}

/* A counting sort. */
static int series_group_samples(struct series *s)
{
	size_t count = profile_sample_count(s->profile), groups = (size_t)series_count(s) + 1;
	size_t begin = 0;

	s->samples = calloc(count + 1, sizeof(*s->samples));
	s->ends = calloc(groups, sizeof(*s->ends));
	if (!s->samples || !s->ends)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		s->ends[series_of(s, profile_sample_at(s->profile, i))]++;
	for (size_t i = 0; i < groups; i++) {
		size_t size = s->ends[i];

		s->ends[i] = begin;
		begin += size;
	}
	for (size_t i = 0; i < count; i++)
		s->samples[s->ends[series_of(s, profile_sample_at(s->profile, i))]++] = (uint32_t)i;
	return 0;
}

int series_init(struct series *s, const struct series_options *options,
	const struct sample_types *types, const struct profile *profile,
	const struct window_processes *processes)
{
	int err;

	*s = (struct series){
		.options = options, .types = types, .profile = profile, .processes = processes
	};
	err = intern_init(&s->keys, KEYS_LIMIT, KEYS_BYTES);
	if (err)
		return err;
	err = intern_init(&s->texts, SERIES_LIMIT, TEXTS_BYTES);
	for (size_t i = 0; !err && i < profile_sample_count(profile); i++)
		err = series_add_sample(s, profile_sample_at(profile, i));
	if (!err)
		err = series_group_samples(s);
	if (err)
		series_deinit(s);
	return err;
}

void series_deinit(struct series *s)
{
	for (uint32_t i = 1; s->labels && i <= series_count(s); i++) {
		labels_deinit(s->labels[i]);
		free(s->labels[i]);
	}
	free(s->labels);
	free(s->of_key);
	free(s->samples);
	free(s->ends);
	intern_deinit(&s->keys);
	intern_deinit(&s->texts);
}

uint32_t series_count(const struct series *s)
{
	return s->texts.count ? (uint32_t)s->texts.count - 1 : 0;
}

const struct labels *series_labels(const struct series *s, uint32_t number)
{
	return s->labels[number];
}

const uint32_t *series_samples(const struct series *s, uint32_t number, size_t *ret_count)
{
	size_t begin = s->ends[number - 1];

	*ret_count = s->ends[number] - begin;
	return s->samples + begin;
}

uint32_t series_of(struct series *s, const struct profile_sample *sample)
{
	struct series_key key = series_key_of(s, sample);
	uint32_t number;

	if (intern_bytes(&s->keys, key.bytes, key.size, &number) || number >= s->key_count)
		return 0;
	return s->of_key[number] & ~(uint32_t)CAPPED;
}
