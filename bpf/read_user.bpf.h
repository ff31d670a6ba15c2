/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * One way to read the memory of the interrupted process, so that BPF code which computes over it
 * compiles natively too: there a test supplies read_user() with a memory of its own.
 * In BPF, bpf/bpf_helpers.h has been included before.
 */
#include <linux/types.h>

#ifdef __BPF__
/* 0, or a negative error when not all of SIZE bytes at ADDRESS could be read. */
static __always_inline long read_user(void *to, __u32 size, __u64 address)
{
	return bpf_probe_read_user(to, size, (const void *)address);
}
#else
long read_user(void *to, __u32 size, __u64 address);
#endif
