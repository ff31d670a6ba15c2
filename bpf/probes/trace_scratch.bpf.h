/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Scratch memory of the programs that trace calls, which can be preempted. Include it before all
 * others that use scratch memory.
 */
#include "bpf/scratch_slots.bpf.h"

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi/trace.h"
#include "bpf/stack.bpf.h"

/* An open call. */
struct trace_level {
	__u64 depth; /* trace_depth() */
	__u64 caller; /* return address; 0 = not known */
	__u64 entry_pc;
	__u32 function;
	__u32 reserved;
	struct abi_open_call call;
};

struct trace_output {
	struct abi_trace_event event;
	union {
		__u8 payload[ABI_TRACE_PAYLOAD_BYTES];
		struct abi_fetch_room room;
	};
};

struct trace_scratch {
	struct trace_level level;
	struct trace_output out;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCH_SLOTS);
	__type(key, __u32);
	__type(value, struct trace_scratch);
} scratches SEC(".maps");
