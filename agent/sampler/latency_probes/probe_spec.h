/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a probe is to measure: an own copy of what the owner gave, and what was made of its text. */
#include "agent/sampler/functions/patterns.h"
#include "agent/sampler/process/selection.h"
#include "agent/sampler/seam/latency_probes.h"

struct probe_spec {
	struct latency_probe of; /* its text is ours */
	struct selection *selection; /* NULL = all processes */
	struct function_patterns wanted, unwanted;
};

/* PROBE is well-formed (latency_probes_check()). Returns -ENOMEM. */
int probe_spec_init(struct probe_spec *spec, const struct latency_probe *probe);
void probe_spec_deinit(struct probe_spec *spec);
/* Whether PROBE is SPEC's, name and content. */
bool probe_spec_is(const struct probe_spec *spec, const struct latency_probe *probe);
