/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernel functions as they happen: the row. */
#include <bpf/libbpf.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/kernel_latency/kernel_latency.h"
#include "agent/sampler/probes/kernel_trace/kernel_trace.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/probes/trace/trace.h"
#include "bpf/abi/shared.h"
#include "bpf/probes/kernel_trace.skel.h"

static bool kernel_trace_is_wanted(const struct collect_options *options)
{
	return options->latency && options->latency->kernel && options->trace;
}

static int kernel_trace_configure(const struct collect_options *options, struct bpf_object *object)
{
	int err = trace_configure_settings(options, object);

	return err ? err : kernel_latency_configure_object(options, object);
}

const char *kernel_trace_probe_name(void)
{
	return probe_kernel_trace.name;
}

const struct probe probe_kernel_trace = {
	.name = "kernel_trace",
	.object = kernel_trace_bpf__elf_bytes,
	.lender = "trace",
	.is_wanted = kernel_trace_is_wanted,
	.configure = kernel_trace_configure,
};
