/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign pprof files become payloads that servers accept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/upload.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "pprof/pprof.h"

#define MESSAGE(name) Perftools__Profiles__##name

/* One stack of two locations; the inner one has an inlined frame. Ids have gaps. */
struct sample_profile {
	MESSAGE(Profile) profile;
	MESSAGE(ValueType) type, period_type, *types[1];
	MESSAGE(Mapping) mapping, *mappings[1];
	MESSAGE(Function) functions[2], *function_pointers[2];
	MESSAGE(Line) lines[2], *line_pointers[2];
	MESSAGE(Location) locations[2], *location_pointers[2];
	MESSAGE(Label) label, *labels[1];
	MESSAGE(Sample) sample, *samples[1];
	uint64_t stack[2];
	int64_t value;
	char *strings[8];
};

static void fill_functions(struct sample_profile *p)
{
	for (int i = 0; i < 2; i++) {
		perftools__profiles__function__init(&p->functions[i]);
		perftools__profiles__line__init(&p->lines[i]);
		perftools__profiles__location__init(&p->locations[i]);
		p->functions[i].id = 70 + (uint64_t)i;
		p->functions[i].name = 3 + i;
		p->function_pointers[i] = &p->functions[i];
		p->lines[i].function_id = p->functions[i].id;
		p->lines[i].line = 10 + i;
		p->line_pointers[i] = &p->lines[i];
		p->locations[i].id = 500 - (uint64_t)i;
		p->locations[i].mapping_id = 9;
		p->locations[i].address = 0x1000 + (uint64_t)i;
		p->location_pointers[i] = &p->locations[i];
		p->stack[i] = p->locations[i].id;
	}
	p->locations[0].n_line = 2;
	p->locations[0].line = p->line_pointers;
}

static void fill_sample(struct sample_profile *p)
{
	perftools__profiles__sample__init(&p->sample);
	perftools__profiles__label__init(&p->label);
	p->value = 7;
	p->label.key = 5;
	p->label.str = 6;
	p->labels[0] = &p->label;
	p->sample.n_location_id = 2;
	p->sample.location_id = p->stack;
	p->sample.n_value = 1;
	p->sample.value = &p->value;
	p->sample.n_label = 1;
	p->sample.label = p->labels;
	p->samples[0] = &p->sample;
}

static void fill(struct sample_profile *p)
{
	static const char *const strings[8] = { "", "alloc-space", "bytes", "inner", "outer\xff",
		"comm", "shop", "spare" };

	*p = (struct sample_profile){ 0 };
	memcpy(p->strings, strings, sizeof(strings));
	perftools__profiles__profile__init(&p->profile);
	perftools__profiles__value_type__init(&p->type);
	perftools__profiles__value_type__init(&p->period_type);
	perftools__profiles__mapping__init(&p->mapping);
	fill_functions(p);
	fill_sample(p);
	p->type.type = 1;
	p->type.unit = 2;
	p->types[0] = &p->type;
	p->mapping.id = 9;
	p->mappings[0] = &p->mapping;
	p->profile.n_sample_type = 1;
	p->profile.sample_type = p->types;
	p->profile.n_mapping = 1;
	p->profile.mapping = p->mappings;
	p->profile.n_function = 2;
	p->profile.function = p->function_pointers;
	p->profile.n_location = 2;
	p->profile.location = p->location_pointers;
	p->profile.n_sample = 1;
	p->profile.sample = p->samples;
	p->profile.n_string_table = 8;
	p->profile.string_table = p->strings;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
	assert_int_equal(io_replace_file(AT_FDCWD, path, bytes, size, 0600), 0);
}

static int read_bytes(const void *bytes, size_t size, struct pprof_read *ret, const char **why)
{
	char path[] = "/tmp/fathom-test-XXXXXX";
	int err;

	close(mkstemp(path));
	write_file(path, bytes, size);
	err = pprof_read_file(path, ret, why);
	unlink(path);
	return err;
}

static int read_message(const struct sample_profile *p, struct pprof_read *ret, const char **why)
{
	size_t size = perftools__profiles__profile__get_packed_size(&p->profile);
	autofree uint8_t *bytes = malloc(size);

	assert_non_null(bytes);
	perftools__profiles__profile__pack(&p->profile, bytes);
	return read_bytes(bytes, size, ret, why);
}

/* ---- payloads ------------------------------------------------------------------------------- */
struct seen {
	int count;
	uint64_t samples;
	struct labels labels; /* of the last */
	struct pprof_read profile; /* the last one, decoded */
};

static int note(void *context, const struct payload *payload)
{
	struct seen *seen = context;
	const char *why;

	seen->count++;
	seen->samples += payload->samples;
	labels_deinit(&seen->labels);
	pprof_read_deinit(&seen->profile);
	assert_int_equal(labels_copy(&payload->labels, &seen->labels), 0);
	assert_int_equal(payload->pprof.bytes[0], 0x1f);
	assert_true(payload->time_ns > 0);
	return read_bytes(payload->pprof.bytes, payload->pprof.size, &seen->profile, &why);
}

static void seen_deinit(struct seen *seen)
{
	labels_deinit(&seen->labels);
	pprof_read_deinit(&seen->profile);
}

static int hand_out(
	const struct pprof_read *profile, const struct labels *external, struct seen *seen)
{
	struct upload_series series = {
		.external = external, .service = "file", .time_ns = 1700000000000000000
	};

	return upload_payloads(profile, &series, note, seen);
}

static const char *string_of(const MESSAGE(Profile) * p, int64_t number)
{
	assert_true(number >= 0 && (size_t)number < p->n_string_table);
	return p->string_table[number];
}

static void properties_that_servers_need_are_added(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	autocall(seen_deinit) struct seen seen = { 0 };
	struct labels external = { 0 };
	struct sample_profile p;
	const MESSAGE(Profile) * out;
	const char *why;

	(void)state;
	fill(&p);
	assert_int_equal(read_message(&p, &profile, &why), 0);
	assert_int_equal(hand_out(&profile, &external, &seen), 0);
	assert_int_equal(seen.count, 1);
	assert_string_equal(labels_get(&seen.labels, "service_name"), "shop");
	assert_string_equal(labels_get(&seen.labels, "__name__"), "memory");
	out = seen.profile.message;
	assert_string_equal(string_of(out, out->sample_type[0]->type), "alloc_space");
	assert_non_null(out->period_type);
	assert_string_equal(string_of(out, out->period_type->type), "alloc_space");
	assert_int_equal(out->period, 1);
	assert_true(out->time_nanos == 1700000000000000000);
	assert_int_equal(out->mapping[0]->id, 1);
	assert_int_equal(out->location[0]->id, 1);
	assert_int_equal(out->location[1]->id, 2);
	assert_int_equal(out->function[0]->id, 1);
	assert_int_equal(out->sample[0]->value[0], 7);
	assert_int_equal(out->sample[0]->n_label, 0);
	assert_int_equal(out->location[0]->n_line, 2);
	assert_string_equal(string_of(out, out->function[0]->name), "inner");
	assert_string_equal(string_of(out, out->function[1]->name), "outer?");
	/* The outer location has no line, so it goes to the mapping without functions. */
	assert_int_equal(out->n_mapping, 2);
	assert_true(out->mapping[0]->has_functions);
	assert_false(out->mapping[1]->has_functions);
	assert_int_equal(out->location[1]->mapping_id, 2);
}

/* The fields that readers of the profile need besides its samples. */
static void everything_but_the_samples_stays(void **state)
{
	static const char hash[] = "#htlhash 9 0123456789abcdef0123456789abcdef";
	static const char other_hash[] = "#htlhash 8 0123456789abcdef0123456789abcdef";
	char *strings[] = { "", "alloc_space", "bytes", "inner", "outer", "comm", "shop", "cpu",
		"drop.*", "keep.*", "https://doc.example", "go1.24", (char *)hash,
		(char *)other_hash, "cpu" };
	int64_t comments[] = { 11, 12, 13 };
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	autocall(seen_deinit) struct seen seen = { 0 };
	struct labels external = { 0 };
	struct sample_profile p;
	const MESSAGE(Profile) * out;
	const char *why;

	(void)state;
	fill(&p);
	p.profile.string_table = strings;
	p.profile.n_string_table = sizeof(strings) / sizeof(*strings);
	p.profile.drop_frames = 8;
	p.profile.keep_frames = 9;
	p.profile.doc_url = 10;
	p.profile.comment = comments;
	p.profile.n_comment = 3;
	p.profile.duration_nanos = 17;
	p.profile.period = 18;
	assert_int_equal(read_message(&p, &profile, &why), 0);
	assert_int_equal(hand_out(&profile, &external, &seen), 0);
	out = seen.profile.message;
	assert_string_equal(string_of(out, out->drop_frames), "drop.*");
	assert_string_equal(string_of(out, out->keep_frames), "keep.*");
	assert_string_equal(string_of(out, out->doc_url), "https://doc.example");
	assert_int_equal(out->duration_nanos, 17);
	assert_int_equal(out->period, 18);
	/* Comments have new ids of mappings; those of mappings that are not sent are dropped. */
	assert_int_equal(out->n_comment, 2);
	assert_string_equal(string_of(out, out->comment[0]), "go1.24");
	assert_string_equal(
		string_of(out, out->comment[1]), "#htlhash 1 0123456789abcdef0123456789abcdef");
}

/* Hands out a profile with TYPES sample types t0, t1, …; the last one is the default. */
static int hand_out_types(size_t types, struct seen *seen)
{
	enum { MOST = PPROF_MAX_TYPES + 1, FIRST = 8 };
	static char names[MOST][8];
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	MESSAGE(ValueType) type[MOST], *pointers[MOST];
	struct labels external = { 0 };
	char *strings[FIRST + MOST + 1];
	struct sample_profile p;
	int64_t values[MOST];
	const char *why;

	fill(&p);
	memcpy(strings, p.strings, sizeof(p.strings));
	for (size_t i = 0; i < types; i++) {
		snprintf(names[i], sizeof(names[i]), "t%zu", i);
		strings[FIRST + i] = strings[FIRST + i + 1] = names[i];
		perftools__profiles__value_type__init(&type[i]);
		type[i].type = FIRST + (int64_t)i;
		type[i].unit = 2;
		pointers[i] = &type[i];
		values[i] = 100 + (int64_t)i;
	}
	/* An equal string at another position. */
	p.profile.default_sample_type = FIRST + (int64_t)types;
	p.profile.string_table = strings;
	p.profile.n_string_table = FIRST + types + 1;
	p.profile.sample_type = pointers;
	p.profile.n_sample_type = types;
	p.sample.value = values;
	p.sample.n_value = types;
	assert_int_equal(read_message(&p, &profile, &why), 0);
	return hand_out(&profile, &external, seen);
}

static void all_sample_types_stay(void **state)
{
	autocall(seen_deinit) struct seen seen = { 0 };
	const MESSAGE(Profile) * out;

	(void)state;
	assert_int_equal(hand_out_types(PPROF_MAX_TYPES, &seen), 0);
	out = seen.profile.message;
	assert_int_equal(out->n_sample_type, PPROF_MAX_TYPES);
	assert_string_equal(string_of(out, out->default_sample_type), "t15");
	for (size_t i = 0; i < PPROF_MAX_TYPES; i++)
		assert_int_equal(out->sample[0]->value[i], 100 + (int64_t)i);
	/* The profile is refused, not truncated. */
	seen.count = 0;
	assert_int_equal(hand_out_types(PPROF_MAX_TYPES + 1, &seen), -E2BIG);
	assert_int_equal(seen.count, 0);
}

static void numbers_in_labels_keep_their_units(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	autocall(seen_deinit) struct seen seen = { 0 };
	struct labels external = { 0 };
	struct upload_series series = {
		.external = &external, .service = "file", .time_ns = 1, .sample_labels = true
	};
	struct sample_profile p;
	const MESSAGE(Label) * label;
	const char *why;

	(void)state;
	fill(&p);
	p.label.str = 0;
	p.label.num = 4096;
	p.label.num_unit = 2;
	assert_int_equal(read_message(&p, &profile, &why), 0);
	assert_int_equal(upload_payloads(&profile, &series, note, &seen), 0);
	label = seen.profile.message->sample[0]->label[0];
	assert_int_equal(label->num, 4096);
	assert_int_equal(label->str, 0);
	assert_string_equal(string_of(seen.profile.message, label->num_unit), "bytes");
}

static void labels_of_samples_stay_where_servers_take_them(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	autocall(seen_deinit) struct seen seen = { 0 };
	struct labels external = { 0 };
	struct upload_series series = {
		.external = &external, .service = "file", .time_ns = 1, .sample_labels = true
	};
	struct sample_profile p;
	const MESSAGE(Profile) * out;
	const char *why;

	(void)state;
	fill(&p);
	assert_int_equal(read_message(&p, &profile, &why), 0);
	assert_int_equal(upload_payloads(&profile, &series, note, &seen), 0);
	out = seen.profile.message;
	assert_int_equal(out->sample[0]->n_label, 1);
	assert_string_equal(string_of(out, out->sample[0]->label[0]->key), "comm");
	assert_string_equal(string_of(out, out->sample[0]->label[0]->str), "shop");
}

static void a_service_that_is_given_keeps_all_together(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	autocall(seen_deinit) struct seen seen = { 0 };
	autocall(labels_deinit) struct labels external = { 0 };
	struct sample_profile p;
	const char *why;

	(void)state;
	fill(&p);
	assert_int_equal(labels_set(&external, "service_name", "mine"), 0);
	assert_int_equal(read_message(&p, &profile, &why), 0);
	assert_int_equal(hand_out(&profile, &external, &seen), 0);
	assert_string_equal(labels_get(&seen.labels, "service_name"), "mine");
}

static void without_comm_the_file_is_the_service(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	autocall(seen_deinit) struct seen seen = { 0 };
	struct labels external = { 0 };
	struct sample_profile p;
	const char *why;

	(void)state;
	fill(&p);
	p.sample.n_label = 0;
	assert_int_equal(read_message(&p, &profile, &why), 0);
	assert_int_equal(hand_out(&profile, &external, &seen), 0);
	assert_string_equal(labels_get(&seen.labels, "service_name"), "file");
}

static void many_samples_go_in_pieces(void **state)
{
	enum { SAMPLES = 20000 };
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	autocall(seen_deinit) struct seen seen = { 0 };
	struct labels external = { 0 };
	struct pprof_options options = { .types = { { "cpu", "nanoseconds" } },
		.type_count = 1,
		.default_type = "cpu",
		.period_type = { "cpu", "nanoseconds" },
		.period = 1,
		.time_ns = 1 };
	autocall(buffer_deinit) struct buffer bytes;
	struct pprof *pprof;
	uint64_t location;
	int64_t one = 1;
	const char *why;

	(void)state;
	assert_int_equal(pprof_create(&options, &pprof), 0);
	for (int i = 0; i < SAMPLES; i++) {
		assert_int_equal(
			pprof_location(pprof, 0, 0x1000 + (uint64_t)i, NULL, 0, &location), 0);
		assert_int_equal(pprof_sample(pprof, &location, 1, &one, NULL, 0), 0);
	}
	buffer_init(&bytes, 16 << 20);
	assert_int_equal(pprof_encode(pprof, true, &bytes), 0);
	pprof_destroy(pprof);
	assert_int_equal(read_bytes(bytes.bytes, bytes.size, &profile, &why), 0);
	assert_int_equal(hand_out(&profile, &external, &seen), 0);
	assert_true(seen.count >= 3);
	assert_int_equal(seen.samples, SAMPLES);
}

static void type_that_is_shown_first_stays_so(void **state)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	autocall(seen_deinit) struct seen seen = { 0 };
	struct labels external = { 0 };
	struct pprof_options options = { .types = { { "cpu", "nanoseconds" },
						 { "off_cpu", "nanoseconds" } },
		.type_count = 2,
		.default_type = "cpu",
		.period_type = { "cpu", "nanoseconds" },
		.period = 1,
		.time_ns = 1 };
	autocall(buffer_deinit) struct buffer bytes;
	const MESSAGE(Profile) * out;
	int64_t values[] = { 0, 5 };
	struct pprof *pprof;
	uint64_t location;
	const char *why;

	(void)state;
	assert_int_equal(pprof_create(&options, &pprof), 0);
	assert_int_equal(pprof_location(pprof, 0, 0x1000, NULL, 0, &location), 0);
	assert_int_equal(pprof_sample(pprof, &location, 1, values, NULL, 0), 0);
	buffer_init(&bytes, 1 << 20);
	assert_int_equal(pprof_encode(pprof, true, &bytes), 0);
	pprof_destroy(pprof);
	assert_int_equal(read_bytes(bytes.bytes, bytes.size, &profile, &why), 0);
	assert_int_equal(hand_out(&profile, &external, &seen), 0);
	out = seen.profile.message;
	assert_string_equal(string_of(out, out->default_sample_type), "cpu");
	assert_int_equal(out->sample[0]->value[0], 0);
	assert_int_equal(out->sample[0]->value[1], 5);
}

/* ---- what is refused --------------------------------------------------------------------------
 */
static void assert_refused(const struct sample_profile *p)
{
	struct pprof_read profile;
	const char *why = NULL;

	assert_int_equal(read_message(p, &profile, &why), -EBADMSG);
	assert_non_null(why);
}

static void dangling_references_are_refused(void **state)
{
	struct sample_profile p;

	(void)state;
	fill(&p);
	p.stack[1] = 42;
	assert_refused(&p);
	fill(&p);
	p.locations[1].mapping_id = 8;
	assert_refused(&p);
	fill(&p);
	p.lines[1].function_id = 8;
	assert_refused(&p);
	fill(&p);
	p.functions[1].name = 8;
	assert_refused(&p);
	fill(&p);
	p.mapping.filename = -1;
	assert_refused(&p);
	fill(&p);
	p.type.unit = 99;
	assert_refused(&p);
	fill(&p);
	p.label.str = INT64_MAX;
	assert_refused(&p);
}

static void invalid_and_duplicate_ids_are_refused(void **state)
{
	struct sample_profile p;

	(void)state;
	fill(&p);
	p.locations[1].id = 0;
	assert_refused(&p);
	fill(&p);
	p.locations[1].id = p.locations[0].id;
	assert_refused(&p);
	fill(&p);
	p.functions[1].id = p.functions[0].id;
	assert_refused(&p);
}

static void values_and_strings_that_are_missing_are_refused(void **state)
{
	struct sample_profile p;

	(void)state;
	fill(&p);
	p.sample.n_value = 0;
	assert_refused(&p);
	fill(&p);
	p.profile.n_sample_type = 0;
	assert_refused(&p);
	fill(&p);
	p.strings[0] = (char *)"not empty";
	assert_refused(&p);
	fill(&p);
	p.profile.n_string_table = 0;
	assert_refused(&p);
}

static void invalid_bytes_are_refused(void **state)
{
	static const uint8_t bomb[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3 };
	struct pprof_read profile;
	const char *why;

	(void)state;
	assert_int_equal(read_bytes("", 0, &profile, &why), -EBADMSG);
	assert_int_equal(read_bytes("\x0a\xff\xff", 3, &profile, &why), -EBADMSG);
	assert_int_equal(read_bytes("#!/bin/sh\n", 10, &profile, &why), -EBADMSG);
	assert_int_equal(read_bytes(bomb, sizeof(bomb), &profile, &why), -EBADMSG);
	assert_int_equal(pprof_read_file("/nonexistent", &profile, &why), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(properties_that_servers_need_are_added),
		cmocka_unit_test(everything_but_the_samples_stays),
		cmocka_unit_test(all_sample_types_stay),
		cmocka_unit_test(numbers_in_labels_keep_their_units),
		cmocka_unit_test(labels_of_samples_stay_where_servers_take_them),
		cmocka_unit_test(a_service_that_is_given_keeps_all_together),
		cmocka_unit_test(without_comm_the_file_is_the_service),
		cmocka_unit_test(many_samples_go_in_pieces),
		cmocka_unit_test(type_that_is_shown_first_stays_so),
		cmocka_unit_test(dangling_references_are_refused),
		cmocka_unit_test(invalid_and_duplicate_ids_are_refused),
		cmocka_unit_test(values_and_strings_that_are_missing_are_refused),
		cmocka_unit_test(invalid_bytes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
