/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on a CPU: a sample at each tick of the CPU's sampling event. */
#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/probes.h"
#include "bpf/abi/sample.h"
#include "bpf/abi/shared.h"
#include "bpf/probes/cpu.skel.h"

static bool cpu_is_wanted(const struct collect_options *options)
{
	(void)options;
	return true;
}

static void cpu_deliver_tick(
	const struct collect_handlers *handlers, uint64_t time_ns, const void *record)
{
	if (handlers->tick)
		handlers->tick(handlers->context, time_ns, record);
}

const struct probe probe_cpu = {
	.name = "cpu",
	.object = cpu_bpf__elf_bytes,
	.by_tables = "take_sample_by_tables",
	.by_frame_pointer = "take_sample",
	.attach = PROBE_SAMPLING_EVENT,
	.own_rings = true,
	.is_wanted = cpu_is_wanted,
	.records = {
		{ ABI_TICK, true, ABI_SAMPLE_BYTES, cpu_deliver_tick },
	},
};
