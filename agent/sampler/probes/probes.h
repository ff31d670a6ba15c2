/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The table of all probes. A new one is a folder and a row of probes.def. */
#include "agent/sampler/collect/probe.h"

enum probe_number {
#define PROBE(name) PROBE_##name,
#include "agent/sampler/probes/probes.def"
#undef PROBE
	PROBES
};

#define PROBE(name) extern const struct probe probe_##name;
#include "agent/sampler/probes/probes.def"
#undef PROBE

/* By number; ends with NULL. Only the first one attached to sampling events is used. */
extern const struct probe *const probes_all[];

/* The types of samples that the probes take which OPTIONS want. */
void probes_sample_types(const struct collect_options *options, struct sample_types *ret_types);
