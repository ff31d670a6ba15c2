/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Distinct samples: those that differ only in count and weight are added up. */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"

struct sample_table {
	struct profile_sample *items;
	size_t count, capacity;
	uint32_t *slots; /* hash table of item number + 1 */
	size_t slot_count; /* a power of two, or 0 */
	uint64_t total_count; /* samples, waits included */
	uint64_t tick_count;
};

void sample_table_init(struct sample_table *t);
void sample_table_deinit(struct sample_table *t);
/* Adds SAMPLE to its equal or as a new one; -E2BIG if that takes more than LIMIT_BYTES. */
int sample_table_add(
	struct sample_table *t, const struct profile_sample *sample, size_t limit_bytes);
/* Removes the samples that KEEP refuses; returns how many were counted in them. */
uint64_t sample_table_keep(struct sample_table *t,
	bool (*keep)(void *context, const struct profile_sample *sample), void *context);
size_t sample_table_bytes(const struct sample_table *t);
