/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The samples of an encoded profile, decoded once into a table. Samples with equal labels share
 * these, and neighbours with the same stack share that, as an agent stores them: who goes through
 * the table does each set of labels once. All numbers in it were checked.
 */
#include <stdint.h>

#include "base/cursor.h"
#include "base/intern.h"
#include "pprof/pprof.h"
#include "pprof/pprof_ids.h"

struct pprof_sample_row {
	uint32_t stack, labels; /* numbers in `stacks` and `sets` */
};

struct pprof_sample_label {
	int64_t key, str, num, num_unit;
};

/* COUNT elements of `locations` or `labels`, from FIRST on. */
struct pprof_sample_part {
	uint32_t first, count;
};

struct pprof_samples {
	struct pprof_sample_row *rows;
	size_t count, capacity;
	int64_t *values; /* `value_count` for each row */
	size_t value_count, value_capacity;
	struct pprof_sample_part *stacks, *sets; /* set 0 has no labels */
	size_t stack_count, stack_capacity, set_count, set_capacity;
	/* What is beyond the limits of pprof.h is only counted in `most_…`. */
	uint32_t *locations; /* indexes in the message, leaf first */
	size_t location_count, location_capacity, most_locations;
	struct pprof_sample_label *labels;
	size_t label_count, label_capacity, most_labels;
	struct intern encoded; /* sets of labels, as they are encoded: equal ones are one */
};

/* What samples may refer to. */
struct pprof_samples_known {
	const struct pprof_ids *locations;
	size_t types, strings;
};

/*
 * Decodes the samples among FIELDS, of a profile. -EBADMSG: one is damaged or refers to what is not
 * there; -E2BIG: more than any agent writes; -ENOMEM.
 */
int pprof_samples_init(
	struct pprof_samples *s, struct cursor fields, const struct pprof_samples_known *known);
void pprof_samples_deinit(struct pprof_samples *s);

static inline const int64_t *pprof_samples_values(const struct pprof_samples *s, size_t row)
{
	return &s->values[row * s->value_count];
}
