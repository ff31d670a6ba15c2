/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/sample_labels.h"

#include <string.h>

#include "base/intern.h"

enum { ZERO_IS_NONE, ZERO_IS_VALUE };
enum { SERIES_NEVER, SERIES_ON_REQUEST };

const struct sample_label sample_labels[SAMPLE_LABEL_COUNT] = {
#define FIELD(name_, field)                                               \
	.name = #name_, .offset = offsetof(struct profile_sample, field), \
	.size = sizeof(((struct profile_sample *)NULL)->field)
#define SAMPLE_NUMBER(name_, field, type, from, zero, series, meta_, ...)                         \
	[SAMPLE_LABEL_##name_] = { FIELD(name_, field), .zero_is_value = (zero) == ZERO_IS_VALUE, \
		.is_series_label = (series) == SERIES_ON_REQUEST, .meta = (meta_) },
#define SAMPLE_TEXT(name_, field, bytes, from, series, meta_, ...)       \
	[SAMPLE_LABEL_##name_] = { FIELD(name_, field), .is_text = true, \
		.is_series_label = (series) == SERIES_ON_REQUEST, .meta = (meta_) },
#include "agent/sampler/profile/sample_labels.def"
#undef FIELD
};

const struct sample_label *sample_label_find(const char *name)
{
	for (size_t i = 0; i < SAMPLE_LABEL_COUNT; i++) {
		if (!strcmp(sample_labels[i].name, name))
			return &sample_labels[i];
	}
	return NULL;
}

uint64_t sample_label_value(const struct sample_label *label, const struct profile_sample *sample)
{
	const uint8_t *field = (const uint8_t *)sample + label->offset;
	uint64_t wide;
	uint32_t narrow;

	if (label->size == sizeof(wide)) {
		memcpy(&wide, field, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, field, sizeof(narrow));
	return narrow;
}

const char *sample_label_text(const struct sample_label *label, const struct profile_sample *sample)
{
	return (const char *)sample + label->offset;
}

void sample_labels_read(const struct abi_sample *s, struct profile_sample *sample)
{
#define SAMPLE_NUMBER(name, field, type, from, ...) sample->field = (from);
#define SAMPLE_TEXT(name, field, bytes, from, ...)                              \
	_Static_assert(sizeof(from) < sizeof(sample->field), "room for a NUL"); \
	memcpy(sample->field, from, sizeof(from));                              \
	sample->field[sizeof(from)] = 0;
#include "agent/sampler/profile/sample_labels.def"
}

uint64_t sample_labels_hash(const struct profile_sample *sample)
{
	const uint64_t words[] = {
#define SAMPLE_NUMBER(name, field, ...) sample->field,
#include "agent/sampler/profile/sample_labels.def"
	};

	return hash_bytes(words, sizeof(words));
}

bool sample_labels_equal(const struct profile_sample *a, const struct profile_sample *b)
{
#define SAMPLE_NUMBER(name, field, ...) a->field == b->field &&
#define SAMPLE_TEXT(name, field, ...) !strncmp(a->field, b->field, sizeof(a->field)) &&
	return
#include "agent/sampler/profile/sample_labels.def"
		true;
}
