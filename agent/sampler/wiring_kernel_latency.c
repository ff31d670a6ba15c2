/* SPDX-License-Identifier: Apache-2.0 */
/* Wires the probes on kernel functions to those on user functions. Nothing is decided here. */
#include <errno.h>

#include "agent/sampler/sampler_internal.h"
#include "base/cleanup.h"

int sampler_kernel_latency_create(
	struct sampler *sampler, const struct sampler_options *options, const char **ret_step)
{
	const struct sampler_latency_options *latency = options->latency;
	struct bpf_object *object = collect_probe_object(sampler->collect, "kernel_latency");
	int err = 0;

	if (!latency->kernel_wanted.count)
		return 0;
	*ret_step = "load the probes of kernel functions";
	if (!latency->dry_run)
		err = object ? kernel_latency_create(object, &sampler->kernel_latency)
			     : -EOPNOTSUPP;
	return err ? err
		   : kernel_functions_create(
			     &(struct kernel_functions_options){
				     .wanted = &latency->kernel_wanted,
				     .unwanted = &latency->unwanted,
				     .max_functions = latency->max_functions,
				     .latency = sampler->latency,
				     .kernel_latency = sampler->kernel_latency,
				     .without = options->collect.without,
			     },
			     &sampler->kernel_functions);
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
