/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/* The fiber that a runtime runs on a thread. */
#include "bpf/abi/sampler.h"

/* 0 = none, or not known. */
struct runtime_thread {
	struct abi_unwind_fiber fiber;
	__u64 fiber_id;
};

/* Where a runtime keeps the state of a thread. */
struct runtime_place {
	__u64 thread_pointer;
	__u64 state_register; /* its value in user mode; 0 = this architecture has none */
};
