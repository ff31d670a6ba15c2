/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/probes.h"

const struct probe *const probes_all[] = {
	&probe_cpu,
	&probe_off_cpu,
	NULL,
};
