/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The series of a window: samples whose label sets are equal after relabelling. Each becomes one
 * profile that is sent. A thread's name, its id or a goroutine's id are labels only where the user
 * asks for them, and only as long as a window has not more series than the user allows: beyond that
 * samples go without them, and are counted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/labels/relabel.h"
#include "agent/sampler/process/processes.h"
#include "agent/sampler/profile/profile.h"
#include "base/intern.h"
#include "symbolizer/index/index.h"

struct series_options {
	const char *node;
	const struct labels *external;
	const struct relabel *relabel; /* NULL = none */
	const char *environment; /* names of variables as for process_labels_meta() */
	uint32_t sample_labels; /* bit N: sample_labels[N] is a label of series, too */
	uint64_t limit; /* series, for those labels */
	/* The index of a module, or NULL where there is none. */
	const struct index *(*index)(void *context, const struct module *module);
	void *index_context;
	struct metrics *metrics;
};

struct series {
	const struct series_options *options;
	struct processes *processes;
	struct intern keys; /* what of a sample decides on its series */
	uint32_t *of_key; /* series, 0 = none */
	size_t key_count, key_capacity;
	struct intern texts; /* label sets; a series' number is its text's */
	struct labels **labels; /* by number */
	size_t label_capacity;
};

/* OPTIONS stay the caller's for the life of S. -ENOMEM, -E2BIG. */
int series_init(struct series *s, const struct series_options *options,
	const struct profile *profile, struct processes *processes);
void series_deinit(struct series *s);
/* Numbers run from 1 to the count. */
uint32_t series_count(const struct series *s);
const struct labels *series_labels(const struct series *s, uint32_t number);
/* 0 = it is not sent: a rule dropped it, or relabelling failed (counted). */
uint32_t series_of(struct series *s, const struct profile_sample *sample);
