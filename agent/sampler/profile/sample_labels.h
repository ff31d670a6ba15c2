/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The labels in which the samples of one process differ, as a table: code that writes labels
 * iterates over it and needs to know none of them by name. sample_labels.def describes the columns.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"

enum sample_label_number {
#define SAMPLE_NUMBER(name, ...) SAMPLE_LABEL_##name,
#define SAMPLE_TEXT(name, ...) SAMPLE_LABEL_##name,
#include "agent/sampler/profile/sample_labels.def"
	SAMPLE_LABEL_COUNT
};

/* All that come from the record of a sample, struct abi_sample. */
enum { SAMPLE_LABELS_OF_RECORD = (1 << SAMPLE_LABEL_COUNT) - 1 };

struct sample_label {
	const char *name;
	const char *meta; /* second name for relabelling, or NULL */
	bool is_text;
	bool zero_is_value; /* numbers: 0 is a value, not "none" */
	bool is_series_label; /* series have it if the user requests it */
	uint16_t offset, size; /* of its field in struct profile_sample */
};

extern const struct sample_label sample_labels[SAMPLE_LABEL_COUNT];

/* Returns NULL if no label of a sample has that name. */
const struct sample_label *sample_label_find(const char *name);
uint64_t sample_label_value(const struct sample_label *label, const struct profile_sample *sample);
const char *sample_label_text(
	const struct sample_label *label, const struct profile_sample *sample);

/* Sets all labels of SAMPLE from the kernel's record. */
void sample_labels_read(const struct abi_sample *s, struct profile_sample *sample);
/* Equal samples have equal hashes. Covers only numbers: thread names rarely differ alone. */
uint64_t sample_labels_hash(const struct profile_sample *sample);
bool sample_labels_equal(const struct profile_sample *a, const struct profile_sample *b);
