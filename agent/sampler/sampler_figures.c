/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and sizes of the sampler's rooms. */
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/sampler_internal.h"

unsigned int sampler_max_waiting_builds(const struct sampler *sampler)
{
	return sampler->build_share.waiting;
}

struct sampler_trouble sampler_trouble(const struct sampler *sampler)
{
	return (struct sampler_trouble){
		.lost = sampler->losses.last,
		.not_started = sampler->trouble_log.not_started,
		.no_space = sampler->trouble_log.no_space,
	};
}

unsigned int sampler_pending_builds(const struct sampler *sampler)
{
	return builds_pending(sampler->builds);
}

struct builds_improving sampler_pending_debug(const struct sampler *sampler)
{
	return builds_improving(sampler->builds);
}

const struct metrics *sampler_metrics(const struct sampler *sampler)
{
	return &sampler->metrics;
}

uint64_t sampler_samples(const struct sampler *sampler)
{
	return aggregator_ticks(&sampler->aggregator);
}

uint64_t sampler_first_sample_ns(const struct sampler *sampler)
{
	return intake_first_sample_ns(&sampler->intake);
}

uint64_t sampler_file_helper_cpu_ns(const struct sampler *sampler)
{
	return file_helper_cpu_ns(&sampler->file_helper);
}

uint64_t sampler_builds_cpu_ns(const struct sampler *sampler)
{
	return builds_cpu_ns(sampler->builds);
}

void sampler_set_builds_share(struct sampler *sampler, double share)
{
	builds_set_share(sampler->builds, share);
}

uint64_t sampler_builds_charged_ns(const struct sampler *sampler)
{
	return builds_charged_ns(sampler->builds);
}

uint64_t sampler_builds_peak_bytes(const struct sampler *sampler)
{
	return builds_peak_bytes(sampler->builds);
}

bool sampler_bpf_time(const struct sampler *sampler, uint64_t *ret_ns, uint64_t *ret_runs)
{
	return collect_bpf_stats(sampler->collect, ret_ns, ret_runs) == 0 && *ret_runs > 0;
}

struct metrics *sampler_metrics_to_add(struct sampler *sampler)
{
	return &sampler->metrics;
}

struct sampler_sizes sampler_sizes(const struct sampler *sampler)
{
	return (struct sampler_sizes){
		.index_bytes = module_indexes_bytes(sampler->module_indexes),
		.kallsyms_bytes = kernel_symbols_bytes(sampler->kernel_symbols),
		.profile_bytes = profile_bytes(windows_profile(sampler->windows, 0)),
		.bpf_map_bytes = collect_map_bytes(sampler->collect),
		.processes = processes_count(sampler->processes),
		.modules = modules_count(sampler->modules),
	};
}
