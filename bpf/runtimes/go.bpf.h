/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Finds the goroutine that a thread of a Go program runs for: thread-local storage (on arm64
 * without cgo a register) holds g; g.m is the thread's m, m.curg the goroutine, which has the goid.
 * g itself is not enough: in 7 to 11 % of samples it is g0 (scheduler, garbage collector, slow
 * paths of system calls) or the signal stack's g, while m.curg is still the goroutine that they
 * work for.
 */
#include <stdbool.h>

#include "bpf/abi/runtime_go.h"
#include "bpf/read_user.bpf.h"
#include "bpf/runtimes/go_birth.bpf.h"
#include "bpf/runtimes/go_g.bpf.h"
#include "bpf/runtimes/go_wait.bpf.h"
#include "bpf/runtimes/thread.bpf.h"

enum {
	GO_M_G0 = 0, /* offsetof(m, g0), in all versions */
	/* From sched.sp to the high end of the stack of a goroutine for calls from C that has not
	 * begun or has returned, in all versions. Goroutines of `go` statements begin further down.
	 */
	GO_EMPTY_STACK = 32,
};

/*
 * Sets *RET_IDLE if the thread, which runs on its own stack, has the goroutine CURG for calls from
 * C, but none is under way: C code runs for no goroutine. Go gives such a goroutine to a thread
 * that it did not create, with an id and as m.curg, at its first call, and since 1.21 the thread
 * keeps it when the call returns. A signal handler borrows one where it finds no g, as on the
 * threads of another Go library. Returns false if CURG cannot be read.
 */
static __always_inline bool go_read_idle(__u64 curg, bool *ret_idle)
{
	__u64 high = 0, sp = 0;

	if (read_user(&high, sizeof(high), curg + 8 * ABI_GO_STACK_HIGH) ||
		read_user(&sp, sizeof(sp), curg + 8 * ABI_GO_SCHED_SP))
		return false;
	*ret_idle = sp + GO_EMPTY_STACK == high;
	return true;
}

/*
 * Reads M's current goroutine, and the g of its thread's stack unless G is that goroutine. Returns
 * false if that cannot be read.
 */
static __always_inline bool go_read_m(
	const struct abi_runtime_go *how, __u64 g, __u64 m, __u64 *ret_curg, __u64 *ret_g0)
{
	return !read_user(ret_curg, sizeof(*ret_curg), m + how->m_curg) &&
	       (g == *ret_curg || !read_user(ret_g0, sizeof(*ret_g0), m + GO_M_G0));
}

/*
 * Sets the goroutine and what it is. Sets none if the thread runs for none: a thread that C code
 * created (g is NULL, or it is between two calls into Go), one without thread-local storage yet, or
 * the scheduler between two goroutines. If one is locked to that thread and waits, it is described,
 * but does not run. Returns false if a pointer could not be followed.
 */
static __always_inline bool go_read_thread(const struct abi_runtime_go *how,
	struct runtime_place place, struct runtime_thread *ret_thread)
{
	__u64 g = 0, m = 0, curg = 0, g0 = 0, described;
	bool idle = false;

	*ret_thread = (struct runtime_thread){};
	if (!go_read_g(how, place, &g))
		return false;
	if (g && read_user(&m, sizeof(m), g + how->g_m))
		return false;
	if (m && !go_read_m(how, g, m, &curg, &g0))
		return false;
	if (curg && g == g0 && !go_read_idle(curg, &idle))
		return false;
	if (!m || idle)
		return true;
	described = curg;
	if (curg && !go_read_current(how, curg, ret_thread))
		return false;
	if (!curg && !go_read_locked(how, m, ret_thread, &described))
		return false;
	ret_thread->fiber.address = curg;
	ret_thread->fiber.thread = m;
	if (how->g_birth)
		go_set_state(g, g0, ret_thread);
	return go_read_birth(how, described, ret_thread);
}
