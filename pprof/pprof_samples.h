/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The samples of an encoded profile, one after the other. Neighbours mostly have the same stack and
 * labels, as an agent stores them: these are not decoded again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "pprof/pprof.h"

struct pprof_sample_label {
	int64_t key, str, num, num_unit;
};

struct pprof_samples {
	struct cursor rest; /* fields of the profile */
	/* Of the sample; what is beyond the limits of pprof.h is only counted. */
	uint64_t locations[PPROF_MAX_FRAMES];
	size_t location_count;
	bool same_stack; /* as the sample before */
	int64_t values[PPROF_MAX_TYPES];
	size_t value_count;
	struct pprof_sample_label labels[PPROF_MAX_LABELS];
	size_t label_count;
	/* Encoded, of the sample before. */
	struct cursor last_stack, last_labels[PPROF_MAX_LABELS];
	size_t last_label_count;
};

/* FIELDS, of a profile, are borrowed. */
void pprof_samples_begin(struct pprof_samples *s, struct cursor fields);
/* False at the end and if the rest is damaged, which `rest` says. */
bool pprof_samples_next(struct pprof_samples *s);
