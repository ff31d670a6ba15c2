// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Runs at each fork, in the parent: the child has not executed anything yet. */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/probes/descendants.bpf.h"
#include "bpf/run_time.bpf.h"

char descendants_license[] SEC("license") = "Dual BSD/GPL";

static __always_inline bool descendants_parent_is_wanted(void)
{
	__u32 tgid, tid;

	identify_pids(task_current(), &tgid, &tid);
	return tgid && (bpf_map_lookup_elem(&tgids, &tgid) || descendants_have_current());
}

/* The arguments are (parent, child). */
SEC("raw_tp")
int descendants_at_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	__u32 tgid = BPF_CORE_READ(child, tgid);
	struct counters *counters = counters_of_cpu();
	__u64 began_ns = BPF_CORE_READ(child, start_time);
	bool is_thread = (__u32)BPF_CORE_READ(child, pid) != tgid;

	if (!counters)
		return 0;
	COUNT_RUN(counters);
	if (!is_thread && descendants_parent_is_wanted())
		bpf_map_update_elem(&descendants, &tgid, &began_ns, BPF_ANY);
	return 0;
}
