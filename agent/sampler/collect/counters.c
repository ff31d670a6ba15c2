/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/counters.h"

#include <stddef.h>

#include "base/log.h"

void counters_add(struct counters *c, const uint64_t now[ABI_COUNTERS], struct metrics *metrics,
	uint64_t ret_since[ABI_COUNTERS])
{
	uint64_t *since = ret_since;

	for (size_t i = 0; i < ABI_COUNTERS; i++) {
		since[i] = now[i] - c->counted[i];
		c->counted[i] = now[i];
	}
	if (since[ABI_COUNT_KERNEL_WALKS_WRONG])
		log_warn("this kernel's unwind tables are not supported, using its own stack walk",
			"stacks=%llu", (unsigned long long)since[ABI_COUNT_KERNEL_WALKS_WRONG]);
	metrics_add(metrics, METRIC_LOST_RING_FULL, since[ABI_COUNT_OUTPUT_FULL]);
	metrics_add(metrics, METRIC_LOST_BPF_ERROR, since[ABI_COUNT_OUTPUT_ERROR]);
	metrics_add(metrics, METRIC_LOST_SIGHTINGS, since[ABI_COUNT_SIGHTINGS_FULL]);
	metrics_add(metrics, METRIC_SAMPLES_LEFT_OUT_IN_KERNEL, since[ABI_COUNT_LEFT_OUT]);
	metrics_add(metrics, METRIC_FIBERS_UNREADABLE, since[ABI_COUNT_FIBER_ERROR]);
	metrics_add(metrics, METRIC_UNWIND_MISSES, since[ABI_COUNT_UNWIND_MISSES]);
}
