/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decodes the pprof that agent/report makes, and finds its parts by sample, frame and line. */
#include <libdeflate.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "proto/profile.pb-c.h"
#include "tests/unit/report_fixture.h"

#define automessage autocall(free_message) Perftools__Profiles__Profile
#define autobuffer autocall(buffer_deinit) struct buffer

static inline void free_message(Perftools__Profiles__Profile **message)
{
	perftools__profiles__profile__free_unpacked(*message, NULL);
}

static inline Perftools__Profiles__Profile *gunzip(const struct buffer *in)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	autofree uint8_t *plain = malloc(1 << 20);
	Perftools__Profiles__Profile *message;
	size_t size;

	assert_int_equal(
		libdeflate_gzip_decompress(d, in->bytes, in->size, plain, 1 << 20, &size), 0);
	libdeflate_free_decompressor(d);
	message = perftools__profiles__profile__unpack(NULL, size, plain);
	assert_non_null(message);
	return message;
}

static inline Perftools__Profiles__Profile *pprof_of(
	struct fixture *f, struct report_summary *ret_summary)
{
	struct report_summary summary;
	autobuffer out;

	buffer_init(&out, SIZE_MAX);
	assert_int_equal(report_pprof(sealed_sources(f), &f->options, &out, &summary), 0);
	if (ret_summary)
		*ret_summary = summary;
	return gunzip(&out);
}

static inline const Perftools__Profiles__Location *location_at(
	const Perftools__Profiles__Profile *m, size_t sample, size_t frame)
{
	assert_in_range(sample, 0, m->n_sample - 1);
	assert_in_range(frame, 0, m->sample[sample]->n_location_id - 1);
	return m->location[m->sample[sample]->location_id[frame] - 1];
}

static inline const Perftools__Profiles__Mapping *mapping_at(
	const Perftools__Profiles__Profile *m, size_t sample, size_t frame)
{
	uint64_t id = location_at(m, sample, frame)->mapping_id;

	return id ? m->mapping[id - 1] : NULL;
}

static inline const char *file_at(
	const Perftools__Profiles__Profile *m, size_t sample, size_t frame)
{
	const Perftools__Profiles__Mapping *mapping = mapping_at(m, sample, frame);

	return mapping ? m->string_table[mapping->filename] : "";
}

static inline const Perftools__Profiles__Function *function_at(
	const Perftools__Profiles__Profile *m, size_t sample, size_t frame, size_t line)
{
	const Perftools__Profiles__Location *location = location_at(m, sample, frame);

	assert_in_range(line, 0, location->n_line - 1);
	return m->function[location->line[line]->function_id - 1];
}

static inline const char *name_at(
	const Perftools__Profiles__Profile *m, size_t sample, size_t frame, size_t line)
{
	return m->string_table[function_at(m, sample, frame, line)->name];
}

static inline const Perftools__Profiles__Label *label_of(
	const Perftools__Profiles__Profile *m, size_t sample, const char *key)
{
	for (size_t i = 0; i < m->sample[sample]->n_label; i++) {
		if (!strcmp(m->string_table[m->sample[sample]->label[i]->key], key))
			return m->sample[sample]->label[i];
	}
	return NULL;
}
