/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The series of a window: samples whose label sets are equal after relabelling. Each series is sent
 * as one profile. Thread name, thread id, goroutine id and labels of goroutines are labels only if
 * the user asks for them and the sample has them, and only up to the user's limit of series per
 * window: samples beyond it go without these labels and are counted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/daemon/fiber_keys.h"
#include "agent/server/export/labels/relabel.h"
#include "agent/server/metadata/metadata.h"
#include "agent/sampler/seam/symbolized.h"
#include "agent/sampler/seam/window_processes.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/profile/sample_type.h"
#include "base/intern.h"
#include "base/metrics.h"

struct series_options {
	const char *node;
	const struct labels *external;
	const struct relabel *relabel; /* NULL = none */
	const char *environment; /* as for process_labels_meta() */
	uint32_t sample_labels; /* bit N: sample_labels[N] is a series label */
	struct fiber_keys fiber_keys; /* and so are these of its fiber */
	uint64_t limit; /* maximum number of series with those labels */
	const struct symbolize *symbolize; /* is asked how programs were built */
	const struct metadata_view *containers; /* NULL = nothing is known of containers */
	struct metrics *metrics;
};

struct series {
	const struct series_options *options;
	const struct sample_types *types;
	const struct profile *profile;
	const struct window_processes *processes;
	struct intern keys; /* the parts of a sample that determine its series */
	uint32_t *of_key; /* key number → series, 0 = none; a flag */
	size_t key_count, key_capacity;
	struct intern texts; /* label sets; a series has the number of its text */
	struct labels **labels; /* by number */
	size_t label_capacity;
	uint32_t
		*samples; /* numbers of the samples in order of their series, then of the numbers */
	size_t *ends; /* by series: where its own end in `samples`; 0: those of no series */
	bool missed_container; /* no runtime has told of some process's container */
};

/* Borrows all of these for the life of S. Returns -ENOMEM or -E2BIG. */
int series_init(struct series *s, const struct series_options *options,
	const struct sample_types *types, const struct profile *profile,
	const struct window_processes *processes);
void series_deinit(struct series *s);
/* Series are numbered from 1 to the count. */
uint32_t series_count(const struct series *s);
const struct labels *series_labels(const struct series *s, uint32_t number);
/* The numbers of a series's samples, ascending. */
const uint32_t *series_samples(const struct series *s, uint32_t number, size_t *ret_count);
/* 0 if the sample is not sent: a rule dropped it, or relabelling failed (counted). */
uint32_t series_of(struct series *s, const struct profile_sample *sample);
