/* SPDX-License-Identifier: Apache-2.0 */
/* What threads wait for: a sample when a thread leaves its CPU, a record when it runs again. */
#include <bpf/libbpf.h>
#include <errno.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/object_constants.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/profile/sample_labels.h"
#include "agent/sampler/profile/sample_type.h"
#include "base/cleanup.h"
#include "bpf/abi/off_cpu.h"
#include "bpf/abi/sample.h"
#include "bpf/abi/shared.h"
#include "bpf/probes/off_cpu.skel.h"

/* A chance of 2^32 or more samples every wait. */
static const uint64_t ALL_WAITS = UINT64_C(1) << 32;

static bool off_cpu_is_wanted(const struct collect_options *options)
{
	return options->off_cpu_share > 0;
}

static int off_cpu_configure(const struct collect_options *options, struct bpf_object *object)
{
	struct bpf_map *kernel_rows = bpf_object__find_map_by_name(object, "kernel_rows");
	struct abi_off_cpu_config *config =
		object_constants(object, ".rodata.probe", sizeof(*config));

	if (!config)
		return -EBADMSG;
	if (options->off_cpu_share < 1)
		config->chance = (uint32_t)MAX(options->off_cpu_share * (double)ALL_WAITS, 1.0);
	/* A thread that leaves was not interrupted, so the kernel walks the kernel stack itself. */
	if (kernel_rows)
		bpf_map__set_autocreate(kernel_rows, false);
	return 0;
}

static void off_cpu_deliver_switch_out(
	const struct collect_handlers *handlers, uint64_t time_ns, const void *record)
{
	if (handlers->switch_out)
		handlers->switch_out(handlers->context, time_ns, record);
}

static void off_cpu_deliver_wake(
	const struct collect_handlers *handlers, uint64_t time_ns, const void *record)
{
	if (handlers->wake)
		handlers->wake(handlers->context, time_ns, record);
}

static const struct sample_type *off_cpu_sample_type(const struct collect_options *options)
{
	static const struct sample_type waits = {
		.count = { "waits", "count" },
		.weight = { "off_cpu", "nanoseconds" },
		.is_time = true,
		.labels = SAMPLE_LABELS_OF_RECORD,
	};

	(void)options;
	return &waits;
}

const struct probe probe_off_cpu = {
	.name = "off_cpu",
	.object = off_cpu_bpf__elf_bytes,
	.by_tables = "take_switch_by_tables",
	.by_frame_pointer = "take_switch",
	.attach = probe_attach_raw_tracepoint,
	.tracepoint = "sched_switch",
	.is_wanted = off_cpu_is_wanted,
	.configure = off_cpu_configure,
	.records = {
		{ ABI_SWITCH_OUT, true, ABI_SAMPLE_BYTES, off_cpu_deliver_switch_out, 0 },
		{ ABI_WAKE, false, sizeof(struct abi_wake), off_cpu_deliver_wake, 0 },
	},
	.sample_type = off_cpu_sample_type,
	.losses = {
		{ ABI_COUNT_WAITS_FULL, METRIC_LOST_WAITS_FULL },
		{ ABI_COUNT_WAITS_UNENDED, METRIC_LOST_WAITS_UNENDED },
	},
	.loss_count = 2,
};
