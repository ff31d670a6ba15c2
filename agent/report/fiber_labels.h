/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a profile says of a sample's fiber (goroutine) beyond its number, as labels: what the thread
 * did with it, which fiber created it, and by which call. The rows FIBER_LABEL of
 * agent/sampler/profile/sample_labels.def name them. What is not known has no label.
 */
#include "agent/report/stacks.h"
#include "agent/sampler/profile/sample_labels.h"
#include "base/intern.h"
#include "pprof/pprof.h"

enum {
#define FIBER_LABEL(...) +1
	FIBER_LABELS = 0
#include "agent/sampler/profile/sample_labels.def"
};

struct fiber_origin;

struct fiber_labels {
	const struct report_sources *sources;
	struct intern texts;
	struct intern keys; /* (origin, process) → index in `origins` */
	struct fiber_origin *origins;
	size_t origin_capacity;
	struct symbolized scratch;
};

int fiber_labels_create(const struct report_sources *sources, struct fiber_labels **ret_labels);
void fiber_labels_destroy(struct fiber_labels *f);
/*
 * Appends the labels of SAMPLE, whose stack has FACTS, to TO, which has room for FIBER_LABELS more.
 * Their texts are valid as long as F.
 */
int fiber_labels_add(struct fiber_labels *f, const struct profile_sample *sample,
	const struct stack_facts *facts, struct pprof_label *to, size_t *count);
