/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The fiber that a runtime runs on a thread. */
#include "bpf/abi/runtime_go.h"
#include "bpf/abi/sampler.h"

/* 0 = none, or not known. */
struct runtime_thread {
	struct abi_unwind_fiber fiber;
	__u64 fiber_id;
	/* As in struct abi_fiber_facts. */
	__u64 parent_id, created_at, start;
	__u64 labels; /* address of what the runtime keeps the fiber's labels in */
	__u32 labels_kind; /* the runtime's: enum abi_go_labels */
	__u32 state; /* enum abi_fiber_state; 0 = there are no facts */
	__u32 wait; /* as in abi_fiber_facts.flags */
	/* Read to here, since BPF's stack is small. */
	__u64 go_birth[ABI_GO_BIRTH_WORDS];
	__u64 go_head[ABI_GO_HEAD_WORDS];
};

/* Where a runtime keeps the state of a thread. */
struct runtime_place {
	__u64 thread_pointer;
	__u64 state_register; /* its value in user mode; 0 = this architecture has none */
};

/* Where the reading of a Go map has come to (bpf/runtimes/go_labels.bpf.h). */
struct go_buckets {
	__u64 first; /* of the array */
	__u64 old; /* the array that comes next; 0 = none */
	__u64 bucket; /* 0 = the next one of the array */
	__u64 pairs; /* still to be found */
	__u32 at, count; /* in the array */
	__u32 old_count;
};
