/* SPDX-License-Identifier: Apache-2.0 */
/* A payload in OTLP, decoded again and checked against the rules of profiles.proto. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/export/remote/otlp.h"
#include "base/cleanup.h"
#include "base/file_hash.h"
#include "base/gzip.h"
#include "base/version.h"
#include "pprof/pprof.h"
#include "proto/otlp_profiles.pb-c.h"
#include "proto/profile.pb-c.h"

#define KERNEL_PC UINT64_C(0xffffffff81000010)

static const int64_t TIME_NS = 1700000000500000000, DURATION_NS = 10000000000;

struct fixture {
	struct payload payload;
	struct pprof *pprof;
	struct buffer encoded;
	Otlp__ExportProfilesServiceRequest *request;
	const Otlp__ProfilesDictionary *dictionary;
	const Otlp__ScopeProfiles *scope;
};

/* ---- making --------------------------------------------------------------------------------- */
static void label(struct fixture *f, const char *name, const char *value)
{
	assert_int_equal(labels_set(&f->payload.labels, name, value), 0);
}

static void begin(struct fixture *f)
{
	const struct pprof_options options = {
		.types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
		.type_count = 2,
		.default_type = "cpu",
		.period_type = { "cpu", "nanoseconds" },
		.period = 52631578,
		.time_ns = 1,
		.duration_ns = 2,
	};

	*f = (struct fixture){ .payload = { .time_ns = TIME_NS, .duration_ns = DURATION_NS } };
	buffer_init(&f->payload.pprof, 1 << 20);
	buffer_init(&f->encoded, 1 << 20);
	label(f, "__name__", "process_cpu");
	label(f, "service_name", "shop");
	assert_int_equal(pprof_create(&options, &f->pprof), 0);
}

static void end(struct fixture *f)
{
	if (f->request)
		otlp__export_profiles_service_request__free_unpacked(f->request, NULL);
	pprof_destroy(f->pprof);
	buffer_deinit(&f->encoded);
	payload_deinit(&f->payload);
}

static uint64_t mapping(struct fixture *f, const char *file, const char *build_id)
{
	const struct pprof_mapping m = { 0x1000, 0x9000, 0x200, file, build_id };
	uint64_t id;

	assert_int_equal(pprof_mapping(f->pprof, &m, &id), 0);
	return id;
}

static void file_hash(struct fixture *f, uint64_t mapping, const char *hex)
{
	char comment[FILE_HASH_COMMENT_BYTES];

	file_hash_comment(mapping, hex, comment);
	assert_int_equal(pprof_comment(f->pprof, comment), 0);
}

static uint64_t location(struct fixture *f, uint64_t of, uint64_t address, const char *file)
{
	const struct pprof_line line = { "shop::pay(int)", "_ZN4shop3payEi", file, 17, 3, 11 };
	uint64_t id;

	assert_int_equal(pprof_location(f->pprof, of, address, &line, *file ? 1 : 0, &id), 0);
	return id;
}

static void sample(struct fixture *f, uint64_t at, int64_t count, int64_t ns)
{
	const int64_t values[] = { count, ns };

	assert_int_equal(pprof_sample(f->pprof, &at, 1, values, NULL, 0), 0);
}

/* ---- checking ------------------------------------------------------------------------------- */
static const char *text(const struct fixture *f, int32_t index)
{
	assert_in_range(index, 0, f->dictionary->n_string_table - 1);
	return f->dictionary->string_table[index];
}

static void assert_attributes(const struct fixture *f, size_t count, const int32_t *indices)
{
	for (size_t i = 0; i < count; i++) {
		assert_in_range(indices[i], 1, f->dictionary->n_attribute_table - 1);
		for (size_t k = 0; k < i; k++)
			assert_int_not_equal(
				f->dictionary->attribute_table[indices[i]]->key_strindex,
				f->dictionary->attribute_table[indices[k]]->key_strindex);
	}
}

static void assert_zero_entries(const Otlp__ProfilesDictionary *d)
{
	assert_true(d->n_mapping_table && d->n_location_table && d->n_function_table &&
		    d->n_link_table && d->n_string_table && d->n_attribute_table &&
		    d->n_stack_table);
	assert_int_equal(otlp__mapping__get_packed_size(d->mapping_table[0]), 0);
	assert_int_equal(otlp__location__get_packed_size(d->location_table[0]), 0);
	assert_int_equal(otlp__function__get_packed_size(d->function_table[0]), 0);
	assert_int_equal(otlp__key_value_and_unit__get_packed_size(d->attribute_table[0]), 0);
	assert_int_equal(otlp__stack__get_packed_size(d->stack_table[0]), 0);
	assert_string_equal(d->string_table[0], "");
	assert_int_equal(otlp__link__get_packed_size(d->link_table[0]), 0);
}

static void assert_tables(const struct fixture *f)
{
	const Otlp__ProfilesDictionary *d = f->dictionary;

	for (size_t i = 0; i < d->n_mapping_table; i++) {
		text(f, d->mapping_table[i]->filename_strindex);
		assert_attributes(f, d->mapping_table[i]->n_attribute_indices,
			d->mapping_table[i]->attribute_indices);
	}
	for (size_t i = 0; i < d->n_location_table; i++) {
		const Otlp__Location *l = d->location_table[i];

		assert_in_range(l->mapping_index, 0, d->n_mapping_table - 1);
		assert_attributes(f, l->n_attribute_indices, l->attribute_indices);
		for (size_t k = 0; k < l->n_lines; k++)
			assert_in_range(l->lines[k]->function_index, 1, d->n_function_table - 1);
	}
	for (size_t i = 1; i < d->n_function_table; i++)
		assert_true(*text(f, d->function_table[i]->name_strindex) ||
			    *text(f, d->function_table[i]->filename_strindex));
	for (size_t i = 1; i < d->n_attribute_table; i++) {
		assert_true(*text(f, d->attribute_table[i]->key_strindex));
		text(f, d->attribute_table[i]->unit_strindex);
		assert_non_null(d->attribute_table[i]->value);
	}
	for (size_t i = 1; i < d->n_stack_table; i++) {
		for (size_t k = 0; k < d->stack_table[i]->n_location_indices; k++)
			assert_in_range(
				d->stack_table[i]->location_indices[k], 1, d->n_location_table - 1);
	}
	for (size_t i = 0; i < d->n_string_table; i++) {
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(d->string_table[i], d->string_table[k]);
	}
}

static void assert_profiles(const struct fixture *f)
{
	for (size_t i = 0; i < f->scope->n_profiles; i++) {
		const Otlp__Profile *p = f->scope->profiles[i];

		assert_true(*text(f, p->sample_type->type_strindex));
		assert_true(*text(f, p->sample_type->unit_strindex));
		assert_int_equal(p->profile_id.len, 16);
		for (size_t k = 0; k < p->n_samples; k++) {
			const Otlp__Sample *s = p->samples[k];

			assert_in_range(s->stack_index, 0, f->dictionary->n_stack_table - 1);
			assert_in_range(s->link_index, 0, f->dictionary->n_link_table - 1);
			assert_int_equal(s->n_values, 1);
			assert_attributes(f, s->n_attribute_indices, s->attribute_indices);
		}
	}
}

static void encode(struct fixture *f)
{
	assert_int_equal(pprof_encode(f->pprof, true, &f->payload.pprof), 0);
	assert_int_equal(otlp_encode(&f->payload, &f->encoded), 0);
	f->request = otlp__export_profiles_service_request__unpack(
		NULL, f->encoded.size, f->encoded.bytes);
	assert_non_null(f->request);
	assert_int_equal(f->request->n_resource_profiles, 1);
	assert_int_equal(f->request->resource_profiles[0]->n_scope_profiles, 1);
	f->scope = f->request->resource_profiles[0]->scope_profiles[0];
	f->dictionary = f->request->dictionary;
	assert_non_null(f->dictionary);
	assert_zero_entries(f->dictionary);
	assert_tables(f);
	assert_profiles(f);
}

/* The value of an attribute among INDICES, or NULL. */
static const Otlp__AnyValue *attribute(
	const struct fixture *f, size_t count, const int32_t *indices, const char *key)
{
	for (size_t i = 0; i < count; i++) {
		const Otlp__KeyValueAndUnit *a = f->dictionary->attribute_table[indices[i]];

		if (!strcmp(text(f, a->key_strindex), key))
			return a->value;
	}
	return NULL;
}

#define ATTRIBUTE(f, of, key) attribute(f, (of)->n_attribute_indices, (of)->attribute_indices, key)

static void assert_text(const Otlp__AnyValue *value, const char *expected)
{
	assert_non_null(value);
	assert_int_equal(value->value_case, OTLP__ANY_VALUE__VALUE_STRING_VALUE);
	assert_string_equal(value->string_value, expected);
}

static void assert_number(const Otlp__AnyValue *value, int64_t expected)
{
	assert_non_null(value);
	assert_int_equal(value->value_case, OTLP__ANY_VALUE__VALUE_INT_VALUE);
	assert_int_equal(value->int_value, expected);
}

static const Otlp__AnyValue *of_resource(const struct fixture *f, const char *key)
{
	const Otlp__Resource *resource = f->request->resource_profiles[0]->resource;

	for (size_t i = 0; i < resource->n_attributes; i++) {
		if (!strcmp(resource->attributes[i]->key, key))
			return resource->attributes[i]->value;
	}
	return NULL;
}

static bool has_string(const struct fixture *f, const char *wanted)
{
	for (size_t i = 0; i < f->dictionary->n_string_table; i++) {
		if (!strcmp(f->dictionary->string_table[i], wanted))
			return true;
	}
	return false;
}

/* ---- cases ---------------------------------------------------------------------------------- */
static void everything_arrives(void **state)
{
	autocall(end) struct fixture f;
	const struct pprof_line lines[] = { { "inner", "_inner", "a.c", 5, 6, 4 },
		{ "outer", "outer", "b.c", 50, 0, 40 } };
	const Otlp__Location *l;
	const Otlp__Function *function;
	const Otlp__Mapping *m;
	uint64_t stack[2];

	(void)state;
	begin(&f);
	assert_int_equal(pprof_location(f.pprof, mapping(&f, "/bin/shop", "abcdef01"), 0x1234,
				 lines, 2, &stack[0]),
		0);
	stack[1] = location(&f, mapping(&f, "/lib/c.so", ""), 0x5678, "");
	assert_int_equal(pprof_sample(f.pprof, stack, 2, (int64_t[]){ 3, 300 }, NULL, 0), 0);
	encode(&f);
	assert_string_equal(f.scope->scope->name, "fathom");
	assert_string_equal(f.scope->scope->version, FATHOM_VERSION);
	assert_int_equal(f.dictionary->n_stack_table, 2);
	assert_int_equal(f.dictionary->stack_table[1]->n_location_indices, 2);
	l = f.dictionary->location_table[f.dictionary->stack_table[1]->location_indices[0]];
	assert_int_equal(l->address, 0x1234);
	assert_int_equal(l->n_lines, 2);
	assert_int_equal(l->lines[0]->line, 5);
	assert_int_equal(l->lines[0]->column, 6);
	function = f.dictionary->function_table[l->lines[0]->function_index];
	assert_string_equal(text(&f, function->name_strindex), "inner");
	assert_string_equal(text(&f, function->system_name_strindex), "_inner");
	assert_string_equal(text(&f, function->filename_strindex), "a.c");
	assert_int_equal(function->start_line, 4);
	function = f.dictionary->function_table[l->lines[1]->function_index];
	assert_string_equal(text(&f, function->name_strindex), "outer");
	m = f.dictionary->mapping_table[l->mapping_index];
	assert_string_equal(text(&f, m->filename_strindex), "/bin/shop");
	assert_int_equal(m->memory_start, 0x1000);
	assert_int_equal(m->memory_limit, 0x9000);
	assert_int_equal(m->file_offset, 0x200);
	l = f.dictionary->location_table[f.dictionary->stack_table[1]->location_indices[1]];
	assert_int_equal(l->n_lines, 0);
	assert_int_equal(l->address, 0x5678);
	assert_string_equal(
		text(&f, f.dictionary->mapping_table[l->mapping_index]->filename_strindex),
		"/lib/c.so");
}

static void each_type_is_a_profile_the_default_first(void **state)
{
	autocall(end) struct fixture f;
	const Otlp__Profile *p;

	(void)state;
	begin(&f);
	sample(&f, location(&f, mapping(&f, "/bin/shop", ""), 1, "a.c"), 3, 300);
	sample(&f, location(&f, mapping(&f, "/bin/shop", ""), 2, "a.c"), 4, 0);
	sample(&f, location(&f, mapping(&f, "/bin/shop", ""), 3, "a.c"), 0, 0);
	encode(&f);
	assert_int_equal(f.scope->n_profiles, 2);
	p = f.scope->profiles[0];
	assert_string_equal(text(&f, p->sample_type->type_strindex), "cpu");
	assert_string_equal(text(&f, p->sample_type->unit_strindex), "nanoseconds");
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->samples[0]->values[0], 300);
	/* Zeros are kept, or nothing would refer to the stack of the other sample type. */
	assert_int_equal(p->samples[1]->values[0], 0);
	assert_int_equal(p->time_unix_nano, TIME_NS);
	assert_int_equal(p->duration_nano, DURATION_NS);
	assert_int_equal(p->period, 52631578);
	assert_string_equal(text(&f, p->period_type->type_strindex), "cpu");
	p = f.scope->profiles[1];
	assert_string_equal(text(&f, p->sample_type->type_strindex), "samples");
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->samples[0]->values[0], 3);
	assert_int_equal(p->samples[1]->values[0], 4);
	/* Both profiles share one stack. */
	assert_int_equal(p->samples[0]->stack_index, f.scope->profiles[0]->samples[0]->stack_index);
	assert_int_equal(f.dictionary->n_stack_table, 4);
}

static void series_labels_are_attributes_by_convention(void **state)
{
	autocall(end) struct fixture f;
	const Otlp__Sample *s;

	(void)state;
	begin(&f);
	label(&f, "node", "n1");
	label(&f, "container_id", "c0ffee");
	label(&f, "executable", "shop.bin");
	label(&f, "comm", "shop-main");
	label(&f, "pid", "77");
	label(&f, "zone", "a b");
	label(&f, "tid", "78");
	label(&f, "goid", "9");
	label(&f, "thread_comm", "worker");
	sample(&f, location(&f, mapping(&f, "/bin/shop", ""), 1, "a.c"), 3, 300);
	encode(&f);
	assert_text(of_resource(&f, "service.name"), "shop");
	assert_text(of_resource(&f, "host.name"), "n1");
	assert_text(of_resource(&f, "container.id"), "c0ffee");
	assert_text(of_resource(&f, "process.executable.name"), "shop.bin");
	assert_number(of_resource(&f, "process.pid"), 77);
	assert_text(of_resource(&f, "comm"), "shop-main");
	assert_text(of_resource(&f, "zone"), "a b");
	assert_null(of_resource(&f, "__name__"));
	assert_int_equal(f.request->resource_profiles[0]->resource->n_attributes, 7);
	s = f.scope->profiles[0]->samples[0];
	assert_int_equal(s->n_attribute_indices, 3);
	assert_number(ATTRIBUTE(&f, s, "thread.id"), 78);
	assert_number(ATTRIBUTE(&f, s, "goid"), 9);
	assert_text(ATTRIBUTE(&f, s, "thread.name"), "worker");
}

/* Kubernetes' attributes belong to pods; elsewhere a user's labels keep their names. */
static void pods_have_the_attributes_of_kubernetes(void **state)
{
	static const char *const pairs[][2] = { { "namespace", "k8s.namespace.name" },
		{ "pod_uid", "k8s.pod.uid" }, { "container", "k8s.container.name" },
		{ "pod", "k8s.pod.name" } };

	(void)state;
	for (size_t count = 3; count <= ARRAY_SIZE(pairs); count++) {
		autocall(end) struct fixture f = { 0 };
		bool is_pod = count == ARRAY_SIZE(pairs);

		begin(&f);
		label(&f, "node", "n1");
		label(&f, "container_id", "c0ffee");
		for (size_t i = 0; i < count; i++)
			label(&f, pairs[i][0], pairs[i][0]);
		sample(&f, location(&f, mapping(&f, "/bin/shop", ""), 1, "a.c"), 3, 300);
		encode(&f);
		assert_text(of_resource(&f, "host.name"), "n1");
		assert_text(of_resource(&f, "container.id"), "c0ffee");
		for (size_t i = 0; i < count; i++)
			assert_text(of_resource(&f, pairs[i][is_pod ? 1 : 0]), pairs[i][0]);
		if (is_pod)
			assert_text(of_resource(&f, "k8s.node.name"), "n1");
		assert_int_equal(f.request->resource_profiles[0]->resource->n_attributes,
			3 + count + (is_pod ? 1 : 0));
	}
}

static void sample_labels_are_attributes_and_keys_stay_unique(void **state)
{
	autocall(end) struct fixture f;
	const struct pprof_label labels[] = {
		{ "pid", NULL, 5, "id" },
		{ "tid", NULL, 6, "id" },
		{ "cpu", NULL, 0, "id" },
		{ "goid", NULL, 17, "id" },
		{ "thread_comm", "worker", 0, NULL },
		{ "comm", "shop-main", 0, NULL },
		{ "allocated", NULL, 4096, "bytes" },
		{ "endpoint", "/pay", 0, NULL },
	};
	const Otlp__KeyValueAndUnit *allocated = NULL;
	const Otlp__Sample *s;
	uint64_t at;

	(void)state;
	begin(&f);
	label(&f, "tid", "78");
	label(&f, "comm", "shop-main");
	at = location(&f, mapping(&f, "/bin/shop", ""), 1, "a.c");
	assert_int_equal(
		pprof_sample(f.pprof, &at, 1, (int64_t[]){ 1, 10 }, labels, ARRAY_SIZE(labels)), 0);
	encode(&f);
	s = f.scope->profiles[0]->samples[0];
	assert_number(ATTRIBUTE(&f, s, "process.pid"), 5);
	assert_number(ATTRIBUTE(&f, s, "thread.id"), 78);
	assert_number(ATTRIBUTE(&f, s, "cpu.logical_number"), 0);
	assert_number(ATTRIBUTE(&f, s, "goid"), 17);
	assert_text(ATTRIBUTE(&f, s, "thread.name"), "worker");
	assert_text(ATTRIBUTE(&f, s, "endpoint"), "/pay");
	assert_number(ATTRIBUTE(&f, s, "allocated"), 4096);
	/* Only the resource has `comm`. */
	assert_null(ATTRIBUTE(&f, s, "comm"));
	assert_int_equal(s->n_attribute_indices, 7);
	for (size_t i = 1; i < f.dictionary->n_attribute_table; i++) {
		const Otlp__KeyValueAndUnit *a = f.dictionary->attribute_table[i];

		if (!strcmp(text(&f, a->key_strindex), "allocated"))
			allocated = a;
		else
			assert_int_equal(a->unit_strindex, 0);
	}
	assert_non_null(allocated);
	assert_string_equal(text(&f, allocated->unit_strindex), "By");
}

/* The index of the link of a sample with these labels. */
static int32_t link_of(struct fixture *f, const char *const pairs[4])
{
	const struct pprof_label labels[] = {
		{ pairs[0], pairs[1], 0, NULL },
		{ pairs[2], pairs[3], 0, NULL },
	};
	uint64_t at;

	begin(f);
	at = location(f, mapping(f, "/bin/shop", ""), 1, "a.c");
	assert_int_equal(
		pprof_sample(f->pprof, &at, 1, (int64_t[]){ 1, 10 }, labels, ARRAY_SIZE(labels)),
		0);
	encode(f);
	return f->scope->profiles[0]->samples[0]->link_index;
}

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static void labels_of_a_span_are_a_link(void **state)
{
	static const uint8_t trace[16] = { 0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd, 0x84,
		0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c };
	static const uint8_t span[8] = { 0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31 };
	static const char *const written[][4] = {
		{ "trace_id", TRACE, "span_id", SPAN },
		{ "span id", SPAN, "trace id", TRACE },
		{ "trace_id", "0AF7651916CD43DD8448EB211C80319C", "span_id", "B7AD6B7169203331" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(written); i++) {
		autocall(end) struct fixture f;
		const Otlp__Link *link;

		assert_int_equal(link_of(&f, written[i]), 1);
		assert_int_equal(f.dictionary->n_link_table, 2);
		link = f.dictionary->link_table[1];
		assert_int_equal(link->trace_id.len, sizeof(trace));
		assert_memory_equal(link->trace_id.data, trace, sizeof(trace));
		assert_int_equal(link->span_id.len, sizeof(span));
		assert_memory_equal(link->span_id.data, span, sizeof(span));
		assert_int_equal(f.dictionary->link_table[0]->trace_id.len, 0);
	}
}

static void labels_that_are_no_ids_are_no_link(void **state)
{
	static const char *const written[][4] = {
		{ "trace_id", TRACE, "span_name", SPAN },
		{ "trace_id", TRACE, "span_id", "12345678901234567890" },
		{ "trace_id", TRACE, "span_id", "0000000000000000" },
		{ "trace_id", "00000000000000000000000000000000", "span_id", SPAN },
		{ "trace_id", TRACE, "span_id", "b7ad6b716920333g" },
		{ "trace_id", TRACE "0", "span_id", SPAN },
		{ "trace-id", TRACE, "span_id", SPAN },
		{ "trace_id2", TRACE, "span_id", SPAN },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(written); i++) {
		autocall(end) struct fixture f;

		assert_int_equal(link_of(&f, written[i]), 0);
		assert_int_equal(f.dictionary->n_link_table, 1);
		assert_non_null(ATTRIBUTE(&f, f.scope->profiles[0]->samples[0], written[i][0]));
	}
}

static const Otlp__Mapping *mapping_of(const struct fixture *f, const char *file)
{
	for (size_t i = 1; i < f->dictionary->n_mapping_table; i++) {
		const Otlp__Mapping *m = f->dictionary->mapping_table[i];

		if (!strcmp(text(f, m->filename_strindex), file))
			return m;
	}
	fail_msg("no mapping %s", file);
	return NULL;
}

static void mappings_say_their_build_id_and_what_they_have(void **state)
{
	static const char gnu[] = "00112233445566778899aabbccddeeff00112233", go[] = "aB/c/d/e";
	static const char hash[] = "caf6e5907166ac76eef618e5f7f59cd9";
	autocall(end) struct fixture f;
	const Otlp__Mapping *m;

	(void)state;
	begin(&f);
	sample(&f, location(&f, mapping(&f, "/bin/gnu", gnu), 1, "a.c"), 1, 1);
	sample(&f, location(&f, mapping(&f, "/bin/go", go), 2, ""), 1, 1);
	sample(&f, location(&f, mapping(&f, "/bin/none", ""), 3, ""), 1, 1);
	file_hash(&f, mapping(&f, "/bin/gnu", gnu), hash);
	file_hash(&f, 4, hash); /* there are three */
	assert_int_equal(pprof_comment(f.pprof, "made by hand"), 0);
	encode(&f);
	m = mapping_of(&f, "/bin/gnu");
	assert_text(ATTRIBUTE(&f, m, "process.executable.build_id.htlhash"), hash);
	assert_text(ATTRIBUTE(&f, m, "process.executable.build_id.gnu"), gnu);
	assert_null(ATTRIBUTE(&f, m, "process.executable.build_id.go"));
	assert_int_equal(m->n_attribute_indices, 6);
	assert_true(ATTRIBUTE(&f, m, "pprof.mapping.has_functions")->bool_value);
	assert_true(ATTRIBUTE(&f, m, "pprof.mapping.has_filenames")->bool_value);
	assert_true(ATTRIBUTE(&f, m, "pprof.mapping.has_line_numbers")->bool_value);
	assert_true(ATTRIBUTE(&f, m, "pprof.mapping.has_inline_frames")->bool_value);
	m = mapping_of(&f, "/bin/go");
	assert_text(ATTRIBUTE(&f, m, "process.executable.build_id.go"), go);
	assert_int_equal(m->n_attribute_indices, 1);
	assert_int_equal(mapping_of(&f, "/bin/none")->n_attribute_indices, 0);
	/* Build IDs are values, not entries of the string table. */
	assert_false(has_string(&f, gnu));
	assert_false(has_string(&f, go));
}

static void frames_say_their_kind(void **state)
{
	static const struct {
		uint64_t address;
		const char *file, *kind;
	} cases[] = {
		{ 0x10, "a.c", "native" },
		{ 0x20, "a.go", "go" },
		{ 0x30, "a.rs", "rust" },
		{ 0x40, "", "native" },
		{ 0x50, "go", "native" },
		{ KERNEL_PC, "core.c", "kernel" },
		{ KERNEL_PC + 1, "", "kernel" },
	};
	autocall(end) struct fixture f;

	(void)state;
	begin(&f);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		sample(&f, location(&f, mapping(&f, "m", ""), cases[i].address, cases[i].file), 1,
			1);
	encode(&f);
	assert_int_equal(f.dictionary->n_location_table, 1 + ARRAY_SIZE(cases));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_text(
			ATTRIBUTE(&f, f.dictionary->location_table[i + 1], "profile.frame.type"),
			cases[i].kind);
}

static void the_same_payload_has_the_same_ids(void **state)
{
	autocall(end) struct fixture f;
	autocall(buffer_deinit) struct buffer again, later;
	Otlp__ExportProfilesServiceRequest *other;
	const Otlp__Profile *cpu, *samples;

	(void)state;
	buffer_init(&again, 1 << 20);
	buffer_init(&later, 1 << 20);
	begin(&f);
	sample(&f, location(&f, mapping(&f, "/bin/shop", ""), 1, "a.c"), 3, 300);
	encode(&f);
	assert_int_equal(otlp_encode(&f.payload, &again), 0);
	assert_int_equal(again.size, f.encoded.size);
	assert_memory_equal(again.bytes, f.encoded.bytes, again.size);
	cpu = f.scope->profiles[0];
	samples = f.scope->profiles[1];
	assert_memory_not_equal(cpu->profile_id.data, samples->profile_id.data, 16);
	f.payload.time_ns++;
	assert_int_equal(otlp_encode(&f.payload, &later), 0);
	other = otlp__export_profiles_service_request__unpack(NULL, later.size, later.bytes);
	assert_memory_not_equal(cpu->profile_id.data,
		other->resource_profiles[0]->scope_profiles[0]->profiles[0]->profile_id.data, 16);
	otlp__export_profiles_service_request__free_unpacked(other, NULL);
}

/* ---- payloads that break the rules of payload.h --------------------------------------------- */
#define MESSAGE(name) Perftools__Profiles__##name

enum { DEPTH = 4097 };

struct broken {
	MESSAGE(Profile) profile;
	MESSAGE(ValueType) type, *types[1];
	MESSAGE(Mapping) mapping, *mappings[1];
	MESSAGE(Function) function, *functions[1];
	MESSAGE(Line) line, *lines[1];
	MESSAGE(Location) location, *locations[1];
	MESSAGE(Sample) sample, *samples[1];
	uint64_t stack[DEPTH];
	int64_t values[2];
	char *strings[2];
};

/* Makes B valid; the cases then break it. */
static void fill(struct broken *b)
{
	memset(b, 0, sizeof(*b));
	perftools__profiles__profile__init(&b->profile);
	perftools__profiles__value_type__init(&b->type);
	perftools__profiles__mapping__init(&b->mapping);
	perftools__profiles__function__init(&b->function);
	perftools__profiles__line__init(&b->line);
	perftools__profiles__location__init(&b->location);
	perftools__profiles__sample__init(&b->sample);
	b->mapping.id = b->function.id = b->location.id = 1;
	b->line.function_id = b->location.mapping_id = b->stack[0] = 1;
	b->type.type = b->type.unit = b->function.name = 1;
	b->values[0] = 5;
	b->types[0] = &b->type;
	b->mappings[0] = &b->mapping;
	b->functions[0] = &b->function;
	b->lines[0] = &b->line;
	b->locations[0] = &b->location;
	b->samples[0] = &b->sample;
	b->strings[0] = (char *)"";
	b->strings[1] = (char *)"text";
	b->location.n_line = b->sample.n_location_id = b->sample.n_value = 1;
	b->location.line = b->lines;
	b->sample.location_id = b->stack;
	b->sample.value = b->values;
	b->profile.n_sample_type = b->profile.n_mapping = b->profile.n_function = 1;
	b->profile.n_location = b->profile.n_sample = 1;
	b->profile.sample_type = b->types;
	b->profile.mapping = b->mappings;
	b->profile.function = b->functions;
	b->profile.location = b->locations;
	b->profile.sample = b->samples;
	b->profile.n_string_table = 2;
	b->profile.string_table = b->strings;
}

static int encode_broken(const struct broken *b)
{
	autocall(buffer_deinit) struct buffer plain, out;
	autocall(payload_deinit) struct payload payload = { .time_ns = 1 };
	size_t size = perftools__profiles__profile__get_packed_size(&b->profile);

	buffer_init(&plain, 1 << 20);
	buffer_init(&out, 1 << 20);
	buffer_init(&payload.pprof, 1 << 20);
	perftools__profiles__profile__pack(&b->profile, buffer_room(&plain, size));
	assert_int_equal(gzip_deflate(plain.bytes, size, 1, &payload.pprof), 0);
	return otlp_encode(&payload, &out);
}

static void dangling_references_are_refused(void **state)
{
	struct broken *b = malloc(sizeof(*b));

	(void)state;
	assert_non_null(b);
	fill(b);
	assert_int_equal(encode_broken(b), 0);
#define BROKEN(what)                                          \
	do {                                                  \
		fill(b);                                      \
		what;                                         \
		assert_int_equal(encode_broken(b), -EBADMSG); \
	} while (0)
	BROKEN(b->mapping.id = 2);
	BROKEN(b->function.id = 0);
	BROKEN(b->location.id = 500);
	BROKEN(b->location.mapping_id = 2);
	BROKEN(b->line.function_id = 0);
	BROKEN(b->line.function_id = 2);
	BROKEN(b->stack[0] = 0);
	BROKEN(b->stack[0] = 2);
	BROKEN(b->sample.n_value = 2);
	BROKEN(b->sample.n_value = 0);
	BROKEN(b->sample.n_location_id = DEPTH);
	BROKEN(b->function.name = 2);
	BROKEN(b->function.filename = -1);
	BROKEN(b->mapping.filename = INT64_MAX);
	BROKEN(b->type.unit = 7);
	BROKEN(b->strings[0] = (char *)"x");
	BROKEN(b->profile.n_string_table = 0);
	BROKEN(b->profile.n_sample_type = b->sample.n_value = 0);
#undef BROKEN
	free(b);
}

static void invalid_profiles_are_refused(void **state)
{
	autocall(payload_deinit) struct payload payload = { .time_ns = 1 };
	autocall(buffer_deinit) struct buffer out;

	(void)state;
	buffer_init(&out, 1 << 20);
	buffer_init(&payload.pprof, 1 << 20);
	assert_int_equal(buffer_string(&payload.pprof, "PROFILE"), 0);
	assert_int_equal(otlp_encode(&payload, &out), -EBADMSG);
	payload.pprof.size = 0;
	assert_int_equal(gzip_deflate("PROFILE", 7, 1, &payload.pprof), 0);
	assert_int_equal(otlp_encode(&payload, &out), -EBADMSG);
	assert_int_equal(out.size, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_arrives),
		cmocka_unit_test(each_type_is_a_profile_the_default_first),
		cmocka_unit_test(series_labels_are_attributes_by_convention),
		cmocka_unit_test(pods_have_the_attributes_of_kubernetes),
		cmocka_unit_test(sample_labels_are_attributes_and_keys_stay_unique),
		cmocka_unit_test(labels_of_a_span_are_a_link),
		cmocka_unit_test(labels_that_are_no_ids_are_no_link),
		cmocka_unit_test(mappings_say_their_build_id_and_what_they_have),
		cmocka_unit_test(frames_say_their_kind),
		cmocka_unit_test(the_same_payload_has_the_same_ids),
		cmocka_unit_test(dangling_references_are_refused),
		cmocka_unit_test(invalid_profiles_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
