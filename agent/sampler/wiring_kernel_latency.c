/* SPDX-License-Identifier: Apache-2.0 */
/* Wires the probes on kernel functions to those on user functions. Nothing is decided here. */
#include <errno.h>
#include <string.h>

#include "agent/sampler/probes/kernel_trace/kernel_trace.h"
#include "agent/sampler/sampler_internal.h"
#include "base/cleanup.h"

/* Traced calls begin once all functions are attached. */
static int kernel_trace_create(struct sampler *sampler)
{
	const struct kallsyms *symbols = kernel_symbols_table(sampler->kernel_symbols);
	uint64_t trampolines[ABI_TRACE_TRAMPOLINES] = { 0 };

	_Static_assert((int)ABI_TRACE_TRAMPOLINES == (int)KALLSYMS_TRAMPOLINES, "as listed");
	if (symbols)
		memcpy(trampolines, kallsyms_marks(symbols)->trampolines, sizeof(trampolines));
	return kernel_trace_begin(sampler->collect, trampolines);
}

int sampler_kernel_latency_create(
	struct sampler *sampler, const struct sampler_options *options, const char **ret_step)
{
	const struct sampler_latency_options *latency = options->latency;
	bool stacks = options->collect.call_stacks;
	struct bpf_object *object = collect_probe_object(sampler->collect,
		options->trace ? kernel_trace_probe_name() : kernel_latency_probe_name(stacks));
	int err = 0;

	if (!latency->kernel_wanted.count)
		return 0;
	*ret_step = "load the probes of kernel functions";
	if (!latency->dry_run)
		err = object ? kernel_latency_create(object, stacks, &sampler->kernel_latency)
			     : -EOPNOTSUPP;
	if (!err)
		err = kernel_functions_create(
			&(struct kernel_functions_options){
				.wanted = &latency->kernel_wanted,
				.unwanted = &latency->unwanted,
				.roots = latency->kernel_roots,
				.max_functions = latency->max_functions,
				.latency = sampler->latency,
				.kernel_latency = sampler->kernel_latency,
				.without = options->collect.without,
			},
			&sampler->kernel_functions);
	if (err || !options->trace || latency->dry_run)
		return err;
	return kernel_trace_create(sampler);
}

void sampler_kernel_latency_destroy(struct sampler *sampler)
{
	kernel_functions_destroy(take(sampler->kernel_functions));
	kernel_latency_destroy(take(sampler->kernel_latency));
}

const struct kernel_functions *sampler_kernel_functions(const struct sampler *sampler)
{
	return sampler->kernel_functions;
}
