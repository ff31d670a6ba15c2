/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * Reads the memory of the sampled process. BPF code that uses only this also compiles natively:
 * there a test supplies a read_user() over its own memory. In BPF, include bpf/bpf_helpers.h first.
 */
#include <linux/types.h>

#ifdef __BPF__
/* Returns 0, or a negative error if not all SIZE bytes at ADDRESS could be read. */
static __always_inline long read_user(void *to, __u32 size, __u64 address)
{
	return bpf_probe_read_user(to, size, (const void *)address);
}
#else
long read_user(void *to, __u32 size, __u64 address);
#endif
