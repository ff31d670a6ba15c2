/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What a goroutine is: on which stack the thread runs, which goroutine created it by which `go`
 * statement, its first function, and where its labels are. These words never change while a
 * goroutine lives, apart from the labels' address; they are next to each other in struct g.
 */
#include <stdbool.h>

#include "bpf/abi/fiber_facts.h"
#include "bpf/abi/runtime_go.h"
#include "bpf/read_user.bpf.h"
#include "bpf/runtimes/thread.bpf.h"

/*
 * G runs, which is the goroutine itself in most samples. Else it is the g of the thread's stack,
 * G0, or that of the signal stack: they have no id.
 */
static __always_inline void go_set_state(__u64 g, __u64 g0, struct runtime_thread *thread)
{
	if (g == thread->fiber.address)
		thread->state = ABI_FIBER_RUNS;
	else if (g != g0)
		thread->state = ABI_FIBER_ON_SIGNAL_STACK;
	else
		thread->state = thread->fiber.address ? ABI_FIBER_ON_THREAD_STACK : ABI_FIBER_NONE;
}

/* Sets what goroutine DESCRIBED is, 0 = there is none. Returns false if that cannot be read. */
static __always_inline bool go_read_birth(
	const struct abi_runtime_go *how, __u64 described, struct runtime_thread *thread)
{
	__u64 *birth = thread->go_birth;

	if (!how->g_birth || !described)
		return true;
	if (read_user(birth, sizeof(thread->go_birth), described + how->g_birth))
		return false;
	if (how->has_parent)
		thread->parent_id = birth[ABI_GO_PARENT];
	thread->created_at = birth[ABI_GO_CREATED_AT];
	thread->start = birth[ABI_GO_START];
	if (how->labels_kind == ABI_GO_LABELS_NONE)
		return true;
	thread->labels_kind = how->labels_kind;
	thread->labels = birth[ABI_GO_LABELS];
	return true;
}
