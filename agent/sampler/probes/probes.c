/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/probes.h"

#include "agent/sampler/profile/sample_type.h"

const struct probe *const probes_all[] = {
#define PROBE(name) [PROBE_##name] = &probe_##name,
#include "agent/sampler/probes/probes.def"
#undef PROBE
	NULL,
};

_Static_assert((int)PROBES <= (int)SAMPLE_TYPES, "each probe may have a type of samples");

void probes_sample_types(const struct collect_options *options, struct sample_types *ret_types)
{
	struct sample_types types = { 0 };

	for (uint32_t i = 0; i < PROBES; i++)
		if (probes_all[i]->sample_type && probes_all[i]->is_wanted(options))
			types.of[i] = *probes_all[i]->sample_type(options);
	*ret_types = types;
}
