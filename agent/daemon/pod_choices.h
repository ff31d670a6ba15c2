/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods are profiled: matches the selectors about pods, and the pods' own annotations, with
 * what container runtimes tell, and says the result to the sampler container by container.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/process/selection.h"
#include "agent/sampler/seam/container_choices.h"
#include "agent/server/metadata/metadata.h"
#include "base/metrics.h"

struct sampler;

/* The setting pod-annotations. */
enum pod_annotations { PODS_OPT_OUT, PODS_OPT_IN, PODS_IGNORED };

/* Returns false if TEXT is none of them. */
bool pod_annotations_parse(const char *text, enum pod_annotations *ret_annotations);

struct pod_choices_options {
	const struct selection *selection; /* NULL = no lists */
	enum pod_annotations annotations;
};

/* Whether the options cannot be followed where no container runtime is asked. */
bool pod_choices_need_runtime(const struct pod_choices_options *options);
/* What OPTIONS make of VIEW. Returns -ENOMEM. */
int pod_choices_make(const struct pod_choices_options *options, const struct metadata_view *view,
	struct container_choices **ret_choices);

/* Keeps the sampler up to date. A zeroed one has told it nothing. */
struct pod_choices {
	struct metadata_view told; /* what the last answer was made of */
	bool has_told;
	uint64_t missed; /* sampler_containers_missed() when last looked */
};

void pod_choices_deinit(struct pod_choices *p);
/*
 * Tells SAMPLER what has changed: CHANGED = the options have. Asks the runtimes again if the
 * sampler has met containers that are not known. METADATA may be NULL. Returns -ENOMEM: what was
 * told stays.
 */
int pod_choices_tell(struct pod_choices *p, const struct pod_choices_options *options,
	struct metadata *metadata, struct sampler *sampler, bool changed);
