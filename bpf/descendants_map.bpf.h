/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * A shared map (shared.bpf.h) that only objects which look for descendants define: each map of an
 * object is a descriptor of the agent's, of which there may be few.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/sampler.h"

/*
 * Descendants of those in tgids that user space may not know yet: when each one began
 * (task_struct.start_time), by its tgid in the initial pid namespace.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ABI_DESCENDANTS);
	__type(key, __u32);
	__type(value, __u64);
} descendants SEC(".maps");
