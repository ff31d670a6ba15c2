/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The pcs of the kernel stacks that stay in a recording, and the kernel symbols that these need. */
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

/* Zeroed = empty. */
struct kernel_pcs {
	uint64_t *pcs;
	size_t count, capacity;
};

void kernel_pcs_add(struct kernel_pcs *k, uint64_t pc);
void kernel_pcs_deinit(struct kernel_pcs *k);
/* Appends the lines of TEXT, from /proc/kallsyms, that name the pcs or bound their symbols. */
void kernel_pcs_reduce(
	const struct kernel_pcs *k, const char *text, size_t size, struct buffer *out);
