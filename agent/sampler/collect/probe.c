/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/probe.h"

#include <bpf/libbpf.h>
#include <errno.h>

int probe_attach_raw_tracepoint(
	const struct probe *probe, struct bpf_program *program, struct bpf_link **ret_link)
{
	struct bpf_link *link = bpf_program__attach_raw_tracepoint(program, probe->tracepoint);

	if (!link)
		return -errno;
	*ret_link = link;
	return 0;
}

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

void probe_count_losses(
	const struct probe *probe, const uint64_t counts[ABI_COUNTERS], struct metrics *metrics)
{
	for (size_t i = 0; i < probe->loss_count; i++)
		metrics_add(metrics, probe->losses[i].metric, counts[probe->losses[i].counter]);
}
