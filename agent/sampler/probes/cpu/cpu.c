/* SPDX-License-Identifier: Apache-2.0 */
/* What runs on a CPU: a sample at each tick of the CPU's sampling event. */
#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/profile/sample_type.h"
#include "bpf/abi/sample.h"
#include "bpf/abi/shared.h"
#include "bpf/probes/cpu.skel.h"

static bool cpu_is_wanted(const struct collect_options *options)
{
	return !options->no_ticks;
}

static void cpu_deliver_tick(
	const struct collect_handlers *handlers, uint64_t time_ns, const void *record)
{
	if (handlers->tick)
		handlers->tick(handlers->context, time_ns, record);
}

static const struct sample_type *cpu_sample_type(const struct collect_options *options)
{
	static const struct sample_type time = {
		.count = { "samples", "count" },
		.weight = { "cpu", "nanoseconds" },
		.is_time = true,
		.labels = SAMPLE_LABELS_OF_RECORD,
	};
	static const struct sample_type cycles = {
		.count = { "samples", "count" },
		.weight = { "cycles", "count" },
		.labels = SAMPLE_LABELS_OF_RECORD,
	};

	return options->event == COLLECT_CYCLES ? &cycles : &time;
}

const struct probe probe_cpu = {
	.name = "cpu",
	.object = cpu_bpf__elf_bytes,
	.by_tables = "take_sample_by_tables",
	.by_frame_pointer = "take_sample",
	.sampling_event = true,
	.own_rings = true,
	.is_wanted = cpu_is_wanted,
	.records = {
		{ ABI_TICK, true, ABI_SAMPLE_BYTES, cpu_deliver_tick, 0 },
	},
	.sample_type = cpu_sample_type,
};
