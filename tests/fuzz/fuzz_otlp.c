/* SPDX-License-Identifier: Apache-2.0 */
/* Any pprof as OTLP: the encoding decodes again, and each index in it is valid. */
#include <stdlib.h>

#include "agent/server/export/remote/otlp.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "proto/otlp_profiles.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int32_t index, size_t count)
{
	if (index < 0 || (size_t)index >= count)
		abort();
}

static void need_attributes(const Otlp__ProfilesDictionary *d, size_t count, const int32_t *indices)
{
	for (size_t i = 0; i < count; i++)
		need(indices[i], d->n_attribute_table);
}

static void check_locations(const Otlp__ProfilesDictionary *d)
{
	for (size_t i = 0; i < d->n_location_table; i++) {
		const Otlp__Location *l = d->location_table[i];

		need(l->mapping_index, d->n_mapping_table);
		need_attributes(d, l->n_attribute_indices, l->attribute_indices);
		for (size_t k = 0; k < l->n_lines; k++)
			need(l->lines[k]->function_index, d->n_function_table);
	}
	for (size_t i = 0; i < d->n_stack_table; i++) {
		for (size_t k = 0; k < d->stack_table[i]->n_location_indices; k++)
			need(d->stack_table[i]->location_indices[k], d->n_location_table);
	}
}

static void check_names(const Otlp__ProfilesDictionary *d)
{
	for (size_t i = 0; i < d->n_mapping_table; i++) {
		need(d->mapping_table[i]->filename_strindex, d->n_string_table);
		need_attributes(d, d->mapping_table[i]->n_attribute_indices,
			d->mapping_table[i]->attribute_indices);
	}
	for (size_t i = 0; i < d->n_function_table; i++) {
		need(d->function_table[i]->name_strindex, d->n_string_table);
		need(d->function_table[i]->system_name_strindex, d->n_string_table);
		need(d->function_table[i]->filename_strindex, d->n_string_table);
	}
	for (size_t i = 0; i < d->n_attribute_table; i++) {
		need(d->attribute_table[i]->key_strindex, d->n_string_table);
		need(d->attribute_table[i]->unit_strindex, d->n_string_table);
	}
}

static void check_profile(const Otlp__ProfilesDictionary *d, const Otlp__Profile *p)
{
	need(p->sample_type->type_strindex, d->n_string_table);
	need(p->sample_type->unit_strindex, d->n_string_table);
	for (size_t i = 0; i < p->n_samples; i++) {
		need(p->samples[i]->stack_index, d->n_stack_table);
		need_attributes(
			d, p->samples[i]->n_attribute_indices, p->samples[i]->attribute_indices);
	}
}

static void check(const struct buffer *out)
{
	Otlp__ExportProfilesServiceRequest *request =
		otlp__export_profiles_service_request__unpack(NULL, out->size, out->bytes);
	const Otlp__ScopeProfiles *scope;

	if (!request)
		abort();
	check_locations(request->dictionary);
	check_names(request->dictionary);
	scope = request->resource_profiles[0]->scope_profiles[0];
	for (size_t i = 0; i < scope->n_profiles; i++)
		check_profile(request->dictionary, scope->profiles[i]);
	otlp__export_profiles_service_request__free_unpacked(request, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { LIMIT = 16 << 20 };
	autocall(payload_deinit) struct payload payload = { .time_ns = 1 };
	autocall(buffer_deinit) struct buffer out;

	buffer_init(&out, LIMIT);
	buffer_init(&payload.pprof, LIMIT);
	if (labels_set(&payload.labels, "service_name", "f") ||
		labels_set(&payload.labels, "tid", "7") ||
		gzip_deflate(data, size, 1, &payload.pprof))
		abort();
	if (!otlp_encode(&payload, &out))
		check(&out);
	return 0;
}
