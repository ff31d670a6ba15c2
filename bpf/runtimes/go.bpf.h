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
#include "bpf/runtimes/thread.bpf.h"

/*
 * Sets the goroutine and what it is. Sets none if the thread runs for none: a thread that C code
 * created (g is NULL), one without thread-local storage yet, or the scheduler between two
 * goroutines. Returns false if a pointer could not be followed.
 */
static __always_inline bool go_read_thread(const struct abi_runtime_go *how,
	struct runtime_place place, struct runtime_thread *ret_thread)
{
	__u64 g = 0, m = 0, curg = 0, goid = 0;

	*ret_thread = (struct runtime_thread){};
	if (!go_read_g(how, place, &g))
		return false;
	if (g && read_user(&m, sizeof(m), g + how->g_m))
		return false;
	if (m && read_user(&curg, sizeof(curg), m + how->m_curg))
		return false;
	if (curg && read_user(&goid, sizeof(goid), curg + how->g_goid))
		return false;
	ret_thread->fiber.address = curg;
	ret_thread->fiber.thread = m;
	ret_thread->fiber_id = goid;
	return go_read_birth(how, g, ret_thread);
}
