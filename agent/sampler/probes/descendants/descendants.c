/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes descend from those that the filter wants: a shared map is told of each fork. */
#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/probes.h"
#include "bpf/abi/shared.h"
#include "bpf/probes/descendants.skel.h"

static bool descendants_is_wanted(const struct collect_options *options)
{
	return options->follow;
}

const struct probe probe_descendants = {
	.name = "descendants",
	.object = descendants_bpf__elf_bytes,
	.attach = probe_attach_raw_tracepoint,
	.tracepoint = "sched_process_fork",
	.is_wanted = descendants_is_wanted,
};
