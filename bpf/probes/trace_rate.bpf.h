/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* What all programs that trace calls share: the settings, and how much may be written. */
#include <stdbool.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/trace.h"

const volatile struct abi_trace_config trace SEC(".rodata.trace") = {};

static const __u64 SECOND_NS = 1000000000;

/* How many events were written in this second. Not exact: CPUs may race for a new second. */
struct trace_rate {
	__u64 second;
	__u64 events;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct trace_rate);
} trace_rate SEC(".maps");

static __always_inline struct trace_rate *trace_rate_at(__u64 now_ns)
{
	__u64 second = now_ns / SECOND_NS;
	__u32 zero = 0;
	struct trace_rate *rate = bpf_map_lookup_elem(&trace_rate, &zero);

	if (rate && rate->second != second) {
		rate->second = second;
		rate->events = 0;
	}
	return rate;
}

static __always_inline bool trace_has_room(__u64 now_ns)
{
	const struct trace_rate *rate;

	if (!trace.events_per_second)
		return true;
	rate = trace_rate_at(now_ns);
	return !rate || rate->events < trace.events_per_second;
}

static __always_inline void trace_count_event(__u64 now_ns)
{
	struct trace_rate *rate;

	if (!trace.events_per_second)
		return;
	rate = trace_rate_at(now_ns);
	if (rate)
		__sync_fetch_and_add(&rate->events, 1);
}

/* The number of a tree that begins. KERNEL: it may begin while a program at a user function runs.
 */
static __always_inline __u64 trace_new_tree(bool kernel)
{
	return bpf_ktime_get_ns() << 9 | (__u64)kernel << 8 | (bpf_get_smp_processor_id() & 0xff);
}
