/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where the kernel counts, for each processor, whether it handles an interrupt (x86_64). */
#include <stdint.h>

struct preempt_count {
	uint32_t variable; /* a per-CPU variable: the number of its type */
	uint32_t off; /* bytes into it */
};

/*
 * Returns -EOPNOTSUPP if BPF cannot read it: the kernel's types do not have it (on aarch64, among
 * others), or neither has its list of symbols (CONFIG_KALLSYMS_ALL).
 */
int preempt_count_find(struct preempt_count *ret_count);
