/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The goroutine that a thread of a Go program is running for: thread-local storage (on arm64
 * without cgo a register) holds g, g.m the thread's m, m.curg the goroutine, whose goid is the
 * answer. g itself will not do: in 7 to 11 % of samples it is g0 (the scheduler, the garbage
 * collector, system calls' slow paths) or the signal stack's, and m.curg still names the goroutine
 * that all of this happens for.
 */
#include <stdbool.h>

#include "bpf/abi/runtime_go.h"
#include "bpf/read_user.bpf.h"
#include "bpf/runtimes/thread.bpf.h"

/*
 * No goroutine when the thread runs for none: one that C code made (its g is NULL), one without
 * thread-local storage yet, or the scheduler between two goroutines. False: a pointer could not be
 * followed.
 */
static __always_inline bool go_read_thread(const struct abi_runtime_go *how,
	struct runtime_place place, struct runtime_thread *ret_thread)
{
	__u64 g = 0, m = 0, curg = 0, goid = 0;

	*ret_thread = (struct runtime_thread){};
	if (how->g_tls_offset == ABI_GO_G_IN_REGISTER)
		g = place.state_register;
	else if (!place.thread_pointer)
		return true;
	else if (read_user(&g, sizeof(g), place.thread_pointer + how->g_tls_offset))
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
	return true;
}
