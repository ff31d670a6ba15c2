/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builder calls made from the input, limits and wrong ids included. Whatever was accepted must
 * encode, decode with the generated code, and refer only to existing ids and strings.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/utf8.h"
#include "pprof/pprof.h"
#include "proto/profile.pb-c.h"

enum { TEXT_BYTES = 24, MAX_PARTS = 12, MAX_CALLS = 2000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void text(struct cursor *c, char *ret_text)
{
	size_t length = cursor_u8(c) % TEXT_BYTES;
	const void *bytes = cursor_bytes(c, length);

	memset(ret_text, 0, TEXT_BYTES);
	if (bytes)
		memcpy(ret_text, bytes, length);
}

static void add_mapping(struct pprof *p, struct cursor *c)
{
	char file[TEXT_BYTES], build_id[TEXT_BYTES];
	struct pprof_mapping mapping = { cursor_u16(c), cursor_u64(c), cursor_u8(c), file,
		build_id };
	uint64_t id;

	text(c, file);
	text(c, build_id);
	pprof_mapping(p, &mapping, &id);
}

static void add_location(struct pprof *p, struct cursor *c)
{
	char names[MAX_PARTS][3][TEXT_BYTES];
	struct pprof_line lines[MAX_PARTS];
	size_t count = cursor_u8(c) % MAX_PARTS;
	uint64_t id;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < 3; k++)
			text(c, names[i][k]);
		lines[i] = (struct pprof_line){ names[i][0], names[i][1], names[i][2],
			(int64_t)cursor_u64(c), cursor_u8(c), (int16_t)cursor_u16(c) };
	}
	pprof_location(p, cursor_u8(c) % 8, cursor_u16(c), lines, count, &id);
}

static void add_sample(struct pprof *p, struct cursor *c)
{
	char names[MAX_PARTS][2][TEXT_BYTES];
	struct pprof_label labels[MAX_PARTS];
	uint64_t locations[MAX_PARTS];
	size_t label_count = cursor_u8(c) % MAX_PARTS, count = cursor_u8(c) % MAX_PARTS;
	int64_t values[2] = { (int64_t)cursor_u64(c), cursor_u8(c) };

	for (size_t i = 0; i < label_count; i++) {
		bool numeric = cursor_u8(c) & 1;

		text(c, names[i][0]);
		text(c, names[i][1]);
		labels[i] = (struct pprof_label){ names[i][0], numeric ? NULL : names[i][1],
			(int64_t)cursor_u64(c), names[i][1] };
	}
	for (size_t i = 0; i < count; i++)
		locations[i] = cursor_u8(c) % 32;
	pprof_sample(p, locations, count, values, labels, label_count);
}

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_sample(
	const Perftools__Profiles__Profile *m, const Perftools__Profiles__Sample *sample)
{
	require(sample->n_value == 2);
	for (size_t i = 0; i < sample->n_location_id; i++)
		require(sample->location_id[i] >= 1 && sample->location_id[i] <= m->n_location);
	for (size_t i = 0; i < sample->n_label; i++) {
		require((uint64_t)sample->label[i]->key < m->n_string_table);
		require((uint64_t)sample->label[i]->str < m->n_string_table);
		require((uint64_t)sample->label[i]->num_unit < m->n_string_table);
		for (size_t k = 0; k < i; k++)
			require(sample->label[k]->key != sample->label[i]->key);
	}
}

static void check(const Perftools__Profiles__Profile *m)
{
	require(m->n_string_table > 0 && !*m->string_table[0]);
	for (size_t i = 0; i < m->n_string_table; i++)
		require(utf8_is_clean(m->string_table[i], strlen(m->string_table[i])));
	for (size_t i = 0; i < m->n_mapping; i++)
		require(m->mapping[i]->id == i + 1);
	for (size_t i = 0; i < m->n_function; i++)
		require(m->function[i]->id == i + 1);
	for (size_t i = 0; i < m->n_location; i++) {
		const Perftools__Profiles__Location *location = m->location[i];

		require(location->id == i + 1 && location->mapping_id <= m->n_mapping);
		for (size_t k = 0; k < location->n_line; k++)
			require(location->line[k]->function_id >= 1 &&
				location->line[k]->function_id <= m->n_function);
	}
	for (size_t i = 0; i < m->n_sample; i++)
		check_sample(m, m->sample[i]);
}

static void call(struct pprof *p, struct cursor *c)
{
	char comment[TEXT_BYTES];

	switch (cursor_u8(c) % 4) {
	case 0:
		add_mapping(p, c);
		break;
	case 1:
		add_location(p, c);
		break;
	case 2:
		add_sample(p, c);
		break;
	default:
		text(c, comment);
		pprof_comment(p, comment);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_over(data, size);
	struct pprof_options options = {
		.types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
		.type_count = 2,
		.default_type = "cpu",
		.limit_bytes = 1 << 20,
	};
	Perftools__Profiles__Profile *message;
	struct buffer out;
	struct pprof *p;

	if (pprof_create(&options, &p))
		return 0;
	for (int i = 0; i < MAX_CALLS && cursor_left(&c); i++)
		call(p, &c);
	buffer_init(&out, SIZE_MAX);
	require(!pprof_encode(p, false, &out));
	message = perftools__profiles__profile__unpack(NULL, out.size, out.bytes);
	require(message && message->n_sample == pprof_sample_count(p));
	check(message);
	perftools__profiles__profile__free_unpacked(message, NULL);
	buffer_deinit(&out);
	pprof_destroy(p);
	return 0;
}
