/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Reads a goroutine's id, and why it waits: g.waitreason, which is of an earlier wait unless the
 * status says that the goroutine waits. A parked goroutine has no thread, but after LockOSThread:
 * then its thread runs nothing else, and m.lockedg leads to it. A goroutine that has a thread waits
 * while that works for it on its own stack: it stops the world, or marks for the collector. Before
 * Go 1.20 the runtime changed only the status then.
 */
#include <stdbool.h>

#include "bpf/abi/fiber_facts.h"
#include "bpf/abi/runtime_go.h"
#include "bpf/read_user.bpf.h"
#include "bpf/runtimes/thread.bpf.h"

enum {
	GO_WAITING = 4, /* _Gwaiting, in all versions */
	GO_SCAN = 0x1000, /* _Gscan, a flag: the collector looks at the stack */
	GO_MINOR_WITH_REASONS = 20,
	GO_REASON = 0xff,
};

static __always_inline bool go_is_waiting(const __u64 *head)
{
	return ((__u32)head[ABI_GO_STATUS] & ~GO_SCAN) == GO_WAITING;
}

static __always_inline __u32 go_wait_of(const struct abi_runtime_go *how, const __u64 *head)
{
	__u32 reason = head[ABI_GO_WAIT_REASON] & GO_REASON;

	return reason ? how->minor << ABI_FIBER_WAIT_REASON_BITS | reason : 0;
}

/* Reads goroutine CURG, for which the thread runs. Returns false if that cannot be read. */
static __always_inline bool go_read_current(
	const struct abi_runtime_go *how, __u64 curg, struct runtime_thread *thread)
{
	__u64 *head = thread->go_head;

	if (!how->minor)
		return !read_user(&thread->fiber_id, sizeof(thread->fiber_id), curg + how->g_goid);
	if (read_user(
		    head, sizeof(thread->go_head), curg + how->g_goid - ABI_GO_ID * sizeof(*head)))
		return false;
	thread->fiber_id = head[ABI_GO_ID];
	if (how->minor >= GO_MINOR_WITH_REASONS && go_is_waiting(head))
		thread->wait = go_wait_of(how, head);
	return true;
}

/*
 * Reads the parked goroutine that is locked to M, which runs none. *RET_G is its address, 0 = there
 * is none. Returns false if that cannot be read.
 */
static __always_inline bool go_read_locked(
	const struct abi_runtime_go *how, __u64 m, struct runtime_thread *thread, __u64 *ret_g)
{
	__u64 *head = thread->go_head, g = 0;

	*ret_g = 0;
	if (!how->minor || read_user(&g, sizeof(g), m + how->m_lockedg))
		return !how->minor;
	if (!g)
		return true;
	if (read_user(head, sizeof(thread->go_head), g + how->g_goid - ABI_GO_ID * sizeof(*head)))
		return false;
	if (!go_is_waiting(head))
		return true;
	thread->fiber_id = head[ABI_GO_ID];
	thread->wait = go_wait_of(how, head);
	*ret_g = g;
	return true;
}
