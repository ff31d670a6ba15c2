// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Looks up a mapping of the process that runs this by unwind/vma.bpf.h, to check whether the
 * kernel's VMA tree has the expected layout. Run once, never attached.
 */
#include "bpf/unwind/vma.bpf.h"

char mapping_probe_license[] SEC("license") = "Dual BSD/GPL";

struct abi_mapping_probe probe;
static __u64 probe_node[VMA_NODE_WORDS];

__noinline __u64 vma_next(__u64 entry, __u64 address)
{
	return vma_read_node(probe_node, entry, address);
}

SEC("raw_tp")
int probe_mapping(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct vm_area_struct *vma = NULL;
	struct mm_struct *mm;

	probe.found = 0;
	if (!vma_supported())
		return 0;
	mm = BPF_CORE_READ(task, mm);
	if (vma_find(mm, probe.address, &vma))
		return 0;
	if (!vma)
		probe.found = ABI_PROBE_NOTHING;
	else if (!vma_report(mm, vma, probe.address, &probe.mapping))
		probe.found = ABI_PROBE_MAPPING;
	return 0;
}
