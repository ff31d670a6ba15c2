/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of sample_labels.def: samples that differ only in it stay separate, and the label
 * appears in pprof and OTLP.
 */
#include "agent/sampler/profile/sample_labels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "agent/server/export/remote/otlp.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "proto/otlp_profiles.pb-c.h"
#include "proto/profile.pb-c.h"
#include "tests/unit/report_fixture.h"

enum { OUTPUT_BYTES = 1 << 20, NUMBER = 77, SENTINEL = 0x5a };

#define TEXT "other"
#define automessage autocall(free_pprof) Perftools__Profiles__Profile
#define autorequest autocall(free_otlp) Otlp__ExportProfilesServiceRequest
#define autobuffer autocall(buffer_deinit) struct buffer

static void free_pprof(Perftools__Profiles__Profile **message)
{
	perftools__profiles__profile__free_unpacked(*message, NULL);
}

static void free_otlp(Otlp__ExportProfilesServiceRequest **message)
{
	otlp__export_profiles_service_request__free_unpacked(*message, NULL);
}

/* ---- making --------------------------------------------------------------------------------- */

static struct profile_sample make_sample(const struct fixture *f)
{
	struct profile_frame frame = in_program(MAIN, 0, f);
	const struct profile_stack stack = { .frames = &frame, .frame_count = 1 };
	struct profile_sample sample = { .process = f->one->number, .count = 1, .weight = 10 };

	assert_int_equal(profile_stack(f->profile, &stack, &sample.stack), 0);
	return sample;
}

/* Gives one label of SAMPLE another value. */
static void change_label(struct profile_sample *sample, const struct sample_label *label)
{
	char *field = (char *)sample + label->offset;
	uint32_t narrow = NUMBER;
	uint64_t wide = NUMBER;

	if (label->is_text)
		snprintf(field, label->size, TEXT);
	else if (label->size == sizeof(wide))
		memcpy(field, &wide, sizeof(wide));
	else
		memcpy(field, &narrow, sizeof(narrow));
}

/* Adds two samples to F that differ in LABEL alone. */
static void add_pair(struct fixture *f, const struct sample_label *label)
{
	struct profile_sample sample = make_sample(f);

	assert_int_equal(profile_add(f->profile, &sample), 0);
	change_label(&sample, label);
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

static void encode_pprof(struct fixture *f, struct buffer *out)
{
	struct report_summary summary;

	buffer_init(out, OUTPUT_BYTES);
	assert_int_equal(report_pprof(sealed_sources(f), &f->options, out, &summary), 0);
}

static Perftools__Profiles__Profile *read_pprof(const struct buffer *gzip)
{
	Perftools__Profiles__Profile *message;
	autobuffer plain;

	buffer_init(&plain, OUTPUT_BYTES);
	assert_int_equal(gzip_inflate(gzip->bytes, gzip->size, &plain), 0);
	message = perftools__profiles__profile__unpack(NULL, plain.size, plain.bytes);
	assert_non_null(message);
	return message;
}

static Otlp__ExportProfilesServiceRequest *read_otlp(struct fixture *f)
{
	Otlp__ExportProfilesServiceRequest *request;
	struct payload payload = { .duration_ns = 1 };
	autobuffer out;

	encode_pprof(f, &payload.pprof);
	buffer_init(&out, OUTPUT_BYTES);
	assert_int_equal(otlp_encode(&payload, &out), 0);
	request = otlp__export_profiles_service_request__unpack(NULL, out.size, out.bytes);
	assert_non_null(request);
	payload_deinit(&payload);
	return request;
}

/* ---- looking -------------------------------------------------------------------------------- */

static const Perftools__Profiles__Label *pprof_label_of(
	const Perftools__Profiles__Profile *m, size_t sample, const char *name)
{
	for (size_t i = 0; i < m->sample[sample]->n_label; i++) {
		if (!strcmp(m->string_table[m->sample[sample]->label[i]->key], name))
			return m->sample[sample]->label[i];
	}
	return NULL;
}

static const Otlp__AnyValue *otlp_attribute_of(
	const Otlp__ExportProfilesServiceRequest *r, size_t sample, const char *name)
{
	const Otlp__ProfilesDictionary *d = r->dictionary;
	const Otlp__Sample *s =
		r->resource_profiles[0]->scope_profiles[0]->profiles[0]->samples[sample];

	for (size_t i = 0; i < s->n_attribute_indices; i++) {
		const Otlp__KeyValueAndUnit *a = d->attribute_table[s->attribute_indices[i]];

		if (!strcmp(d->string_table[a->key_strindex], name))
			return a->value;
	}
	return NULL;
}

static const char *const attribute_names[SAMPLE_LABEL_COUNT] = {
#define SAMPLE_NUMBER(name, field, type, from, zero, series, meta, attribute, place) \
	[SAMPLE_LABEL_##name] = attribute,
#define SAMPLE_TEXT(name, field, bytes, from, series, meta, attribute, place) \
	[SAMPLE_LABEL_##name] = attribute,
#include "agent/sampler/profile/sample_labels.def"
};

/* ---- cases ---------------------------------------------------------------------------------- */

static void samples_that_differ_in_one_label_stay_apart(void **state)
{
	struct fixture *f = *state;
	const struct profile_sample first = make_sample(f);

	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		struct profile_sample sample = first;

		change_label(&sample, &sample_labels[i]);
		assert_false(sample_labels_equal(&first, &sample));
		assert_true(sample_labels_equal(&sample, &sample));
		assert_int_equal(profile_add(f->profile, &sample), 0);
		assert_int_equal(profile_sample_count(f->profile), i + 1);
	}
}

/* Otherwise many samples that differ in one number would fill one chain of the table. */
static void numbers_are_part_of_the_hash(void **state)
{
	const struct profile_sample first = make_sample(*state);

	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		struct profile_sample sample = first;

		change_label(&sample, &sample_labels[i]);
		if (!sample_labels[i].is_text)
			assert_int_not_equal(
				sample_labels_hash(&first), sample_labels_hash(&sample));
	}
}

static void each_label_comes_out_in_pprof(void **state)
{
	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		const struct sample_label *label = &sample_labels[i];
		const Perftools__Profiles__Label *found;
		struct fixture *f;
		autobuffer out;

		assert_int_equal(report_teardown(state), 0);
		assert_int_equal(report_setup(state), 0);
		f = *state;
		add_pair(f, label);
		encode_pprof(f, &out);

		automessage *m = read_pprof(&out);

		assert_int_equal(m->n_sample, 2);
		found = pprof_label_of(m, 1, label->name);
		assert_non_null(found);
		if (label->is_text) {
			assert_string_equal(m->string_table[found->str], TEXT);
			continue;
		}
		assert_int_equal(found->num, NUMBER);
		assert_string_equal(m->string_table[found->num_unit], "id");
		assert_int_equal(pprof_label_of(m, 0, label->name) != NULL, label->zero_is_value);
	}
}

static void each_label_comes_out_in_otlp(void **state)
{
	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		const struct sample_label *label = &sample_labels[i];
		const Otlp__AnyValue *found;
		struct fixture *f;

		assert_int_equal(report_teardown(state), 0);
		assert_int_equal(report_setup(state), 0);
		f = *state;
		add_pair(f, label);

		autorequest *r = read_otlp(f);

		found = otlp_attribute_of(r, 1, attribute_names[i]);
		assert_non_null(found);
		if (label->is_text)
			assert_string_equal(found->string_value, TEXT);
		else
			assert_int_equal(found->int_value, NUMBER);
	}
}

static void labels_are_read_from_the_kernels_record(void **state)
{
	struct abi_sample record;
	struct profile_sample sample;

	(void)state;
	memset(&record, SENTINEL, sizeof(record));
	memset(&sample, 0, sizeof(sample));
	sample_labels_read(&record, &sample);
	assert_int_equal(sample.pid, record.tgid);
	assert_int_equal(sample.tid, record.tid);
	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		const struct sample_label *label = &sample_labels[i];

		if (label->is_text)
			assert_int_equal(
				strlen(sample_label_text(label, &sample)), label->size - 1);
		else
			assert_int_not_equal(sample_label_value(label, &sample), 0);
	}
}

static void labels_are_found_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++)
		assert_ptr_equal(sample_label_find(sample_labels[i].name), &sample_labels[i]);
	assert_null(sample_label_find("comm"));
	assert_null(sample_label_find(""));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, report_setup, report_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(samples_that_differ_in_one_label_stay_apart),
		CASE(numbers_are_part_of_the_hash),
		CASE(each_label_comes_out_in_pprof),
		CASE(each_label_comes_out_in_otlp),
		CASE(labels_are_read_from_the_kernels_record),
		CASE(labels_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
