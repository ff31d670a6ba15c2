/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a payload in OTLP. pprof's samples have a value for each type; an OTLP profile has
 * one type, so each type becomes a profile of its own. They share the stacks, which are a table,
 * and the sets of attributes.
 */
#include "agent/server/export/remote/otlp_profiles.h"

#include <stdbool.h>
#include <string.h>

#include "agent/server/export/remote/otlp_internal.h"
#include "base/cleanup.h"

enum { PROFILE_ID_BYTES = 16 };

/* A sample without its values, which differ by type. */
struct sample_key {
	int32_t stack, link;
	size_t attribute_count;
	int32_t *attributes;
};

static int find_stack(struct otlp *o, const Perftools__Profiles__Sample *sample, int32_t *ret_index)
{
	int32_t locations[OTLP_STACK_LIMIT];
	uint32_t number;
	int err;

	for (size_t i = 0; i < sample->n_location_id; i++)
		locations[i] = (int32_t)sample->location_id[i];
	err = intern_bytes(
		&o->stacks, locations, sample->n_location_id * sizeof(*locations), &number);
	if (!err)
		*ret_index = (int32_t)number;
	return err;
}

static bool has_value(const Perftools__Profiles__Sample *sample)
{
	for (size_t i = 0; i < sample->n_value; i++) {
		if (sample->value[i])
			return true;
	}
	return false;
}

static int find_keys(struct otlp *o, struct sample_key **ret_keys)
{
	struct sample_key *keys = otlp_alloc(o, o->pprof->n_sample, sizeof(*keys));
	struct attribute_set of_all = { .count = 0 };
	int err = keys ? otlp_thread_attributes(o, &of_all) : o->arena.error;

	for (size_t i = 0; i < o->pprof->n_sample && !err; i++) {
		const Perftools__Profiles__Sample *sample = o->pprof->sample[i];
		struct attribute_set set = of_all;

		err = find_stack(o, sample, &keys[i].stack);
		if (!err)
			err = otlp_sample_attributes(o, sample, &set);
		if (!err)
			err = otlp_link(o, sample, &keys[i].link);
		if (!err)
			err = otlp_keep_attributes(
				o, &set, &keys[i].attribute_count, &keys[i].attributes);
	}
	*ret_keys = keys;
	return err;
}

/* The sample type users see first: pprof's default type, else the last. */
static size_t otlp_default_type(const Perftools__Profiles__Profile *p)
{
	for (size_t i = 0; i < p->n_sample_type; i++) {
		if (p->default_sample_type && p->sample_type[i]->type == p->default_sample_type)
			return i;
	}
	return p->n_sample_type - 1;
}

/* Leaves out values of 0, but puts each sample into at least one profile. */
static int fill_samples(
	struct otlp *o, const struct sample_key *keys, size_t type, Otlp__Profile *profile)
{
	const Perftools__Profiles__Profile *p = o->pprof;
	Otlp__Sample *samples = otlp_alloc(o, p->n_sample, sizeof(*samples));
	bool is_default = type == otlp_default_type(p);

	profile->samples = otlp_alloc(o, p->n_sample, sizeof(*profile->samples));
	if (!samples || !profile->samples)
		return o->arena.error;
	for (size_t i = 0; i < p->n_sample; i++) {
		Otlp__Sample *sample = &samples[i];

		if (!p->sample[i]->value[type] && (!is_default || has_value(p->sample[i])))
			continue;
		otlp__sample__init(sample);
		sample->stack_index = keys[i].stack;
		sample->link_index = keys[i].link;
		sample->n_attribute_indices = keys[i].attribute_count;
		sample->attribute_indices = keys[i].attributes;
		sample->n_values = 1;
		sample->values = &p->sample[i]->value[type];
		profile->samples[profile->n_samples++] = sample;
	}
	return 0;
}

static int fill_type(
	struct otlp *o, const Perftools__Profiles__ValueType *from, Otlp__ValueType **ret_type)
{
	Otlp__ValueType *type = otlp_alloc(o, 1, sizeof(*type));
	int err;

	if (!type)
		return o->arena.error;
	otlp__value_type__init(type);
	err = otlp_pprof_string(o, from->type, &type->type_strindex);
	if (!err)
		err = otlp_pprof_string(o, from->unit, &type->unit_strindex);
	*ret_type = type;
	return err;
}

/*
 * Deterministic, so that a receiver can detect a payload sent twice. The time distinguishes equal
 * profiles of two windows, the number of the type the profiles of one window.
 */
static int fill_id(struct otlp *o, size_t type, ProtobufCBinaryData *id)
{
	const struct payload *payload = o->payload;
	uint64_t parts[4 + 2 * LABELS_LIMIT] = { hash_bytes(
							 payload->pprof.bytes, payload->pprof.size),
		type, (uint64_t)payload->time_ns, payload->pprof.size };
	uint64_t *hashes = otlp_alloc(o, 1, PROFILE_ID_BYTES);
	size_t count = 4;

	if (!hashes)
		return o->arena.error;
	for (size_t i = 0; i < payload->labels.count; i++) {
		const struct label *label = &payload->labels.items[i];

		parts[count++] = hash_bytes(label->name, strlen(label->name));
		parts[count++] = hash_bytes(label->value, strlen(label->value));
	}
	hashes[0] = hash_bytes(parts, count * sizeof(*parts));
	parts[1] = ~parts[1];
	hashes[1] = hash_bytes(parts, count * sizeof(*parts)) | 1; /* never all zero */
	id->data = (uint8_t *)hashes;
	id->len = PROFILE_ID_BYTES;
	return 0;
}

static int fill_profile(
	struct otlp *o, const struct sample_key *keys, size_t type, Otlp__Profile *profile)
{
	const Perftools__Profiles__Profile *p = o->pprof;
	int err = fill_type(o, p->sample_type[type], &profile->sample_type);

	profile->time_unix_nano = (uint64_t)o->payload->time_ns;
	profile->duration_nano = (uint64_t)MAX(o->payload->duration_ns, (int64_t)0);
	profile->period = p->period;
	if (!err && p->period_type)
		err = fill_type(o, p->period_type, &profile->period_type);
	if (!err)
		err = fill_id(o, type, &profile->profile_id);
	return err ? err : fill_samples(o, keys, type, profile);
}

int otlp_profiles(struct otlp *o, Otlp__ScopeProfiles *scope)
{
	size_t count = o->pprof->n_sample_type, first = otlp_default_type(o->pprof);
	Otlp__Profile *profiles = otlp_alloc(o, count, sizeof(*profiles));
	struct sample_key *keys;
	int err = find_keys(o, &keys);

	scope->profiles = otlp_alloc(o, count, sizeof(*scope->profiles));
	if (!profiles || !scope->profiles)
		return o->arena.error;
	for (size_t i = 0; i < count && !err; i++) {
		size_t type = i == 0 ? first : i <= first ? i - 1 : i;

		otlp__profile__init(&profiles[i]);
		scope->profiles[i] = &profiles[i];
		err = fill_profile(o, keys, type, &profiles[i]);
	}
	scope->n_profiles = count;
	return err;
}

int otlp_stack_table(struct otlp *o, Otlp__ProfilesDictionary *d)
{
	size_t count = o->stacks.count;
	Otlp__Stack *stacks = otlp_alloc(o, count, sizeof(*stacks));

	d->stack_table = otlp_alloc(o, count, sizeof(*d->stack_table));
	if (!stacks || !d->stack_table)
		return o->arena.error;
	for (uint32_t i = 0; i < count; i++) {
		otlp__stack__init(&stacks[i]);
		stacks[i].n_location_indices = intern_size(&o->stacks, i) / sizeof(int32_t);
		stacks[i].location_indices = (void *)intern_text(&o->stacks, i);
		d->stack_table[i] = &stacks[i];
	}
	d->n_stack_table = count;
	return 0;
}
