/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * The goroutine that a thread of a Go program is running for: thread-local storage holds g, g.m the
 * thread's m, m.curg the goroutine, whose goid is the answer. g itself will not do: in 7 to 11 % of
 * samples it is g0 (the scheduler, the garbage collector, system calls' slow paths) or the signal
 * stack's, and m.curg still names the goroutine that all of this happens for.
 */
#include "bpf/abi/sampler.h"
#include "bpf/read_user.bpf.h"

/*
 * 0 when the thread runs for no goroutine: one that C code made (its g is NULL), one without
 * thread-local storage yet, or the scheduler between two goroutines. *RET_ERROR is then 0. A
 * pointer that cannot be followed gives 0 and *RET_ERROR 1.
 */
static __always_inline __u64 go_read_goid(
	const struct abi_go_process *how, __u64 thread_pointer, __u32 *ret_error)
{
	__u64 g = 0, m = 0, curg = 0, goid = 0;

	*ret_error = 0;
	if (!thread_pointer)
		return 0;
	*ret_error = 1;
	if (read_user(&g, sizeof(g), thread_pointer + how->g_tls_offset))
		return 0;
	if (g && read_user(&m, sizeof(m), g + how->g_m))
		return 0;
	if (m && read_user(&curg, sizeof(curg), m + how->m_curg))
		return 0;
	if (curg && read_user(&goid, sizeof(goid), curg + how->g_goid))
		return 0;
	*ret_error = 0;
	return goid;
}
