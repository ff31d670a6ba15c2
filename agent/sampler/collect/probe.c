/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/probe.h"

const struct probe_record *probe_record(const struct probe *const *probes, uint32_t kind)
{
	for (; probes && *probes; probes++) {
		for (size_t i = 0; i < PROBE_MAX_KINDS && (*probes)->records[i].kind; i++) {
			if ((*probes)->records[i].kind == kind)
				return &(*probes)->records[i];
		}
	}
	return NULL;
}
