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

/*
 * Sets the goroutine and what it is. Sets none if the thread runs for none: a thread that C code
 * created (g is NULL), one without thread-local storage yet, or the scheduler between two
 * goroutines. If one is locked to that thread and waits, it is described, but does not run.
 * Returns false if a pointer could not be followed.
 */
static __always_inline bool go_read_thread(const struct abi_runtime_go *how,
	struct runtime_place place, struct runtime_thread *ret_thread)
{
	__u64 g = 0, m = 0, curg = 0, described;

	*ret_thread = (struct runtime_thread){};
	if (!go_read_g(how, place, &g))
		return false;
	if (g && read_user(&m, sizeof(m), g + how->g_m))
		return false;
	if (m && read_user(&curg, sizeof(curg), m + how->m_curg))
		return false;
	described = curg;
	if (curg && !go_read_current(how, curg, ret_thread))
		return false;
	if (m && !curg && !go_read_locked(how, m, ret_thread, &described))
		return false;
	ret_thread->fiber.address = curg;
	ret_thread->fiber.thread = m;
	return go_read_birth(how, g, described, ret_thread);
}
