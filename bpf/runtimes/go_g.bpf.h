/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Finds a thread's g: in thread-local storage, or on arm64 without cgo in a register. In a shared
 * library the offset from the thread pointer differs from process to process: the dynamic linker
 * has stored it in a word of the process, which may say anything, since its file may be forged.
 */
#include <stdbool.h>

#include "bpf/abi/runtime_go.h"
#include "bpf/read_user.bpf.h"
#include "bpf/runtimes/thread.bpf.h"

static __always_inline bool go_tls_is_offset(__u64 offset)
{
	return offset + ABI_GO_TLS_LIMIT < 2 * ABI_GO_TLS_LIMIT && !(offset & 7);
}

/* Gets the offset, or 0 from a word that is not set yet. Returns false if there is none. */
static __always_inline bool go_tls_offset(const struct abi_runtime_go *how, __u64 *ret_offset)
{
	*ret_offset = how->g_tls_offset;
	if (!how->g_tls_word)
		return true;
	return !read_user(ret_offset, sizeof(*ret_offset), how->g_tls_word) &&
	       go_tls_is_offset(*ret_offset);
}

/*
 * Gets the address of g, 0 if the thread has none: C code created it, or it has no thread-local
 * storage yet. Returns false if a pointer could not be followed.
 */
static __always_inline bool go_read_g(
	const struct abi_runtime_go *how, struct runtime_place place, __u64 *ret_g)
{
	__u64 offset;

	*ret_g = 0;
	if (!go_tls_offset(how, &offset))
		return false;
	if (offset == ABI_GO_G_IN_REGISTER)
		*ret_g = place.state_register;
	else if (offset && place.thread_pointer)
		return !read_user(ret_g, sizeof(*ret_g), place.thread_pointer + offset);
	return true;
}
