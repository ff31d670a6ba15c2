/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How to unwind from the procedure linkage table where no entry tells: lld and mold write none. */
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/elf/elf_image.h"

/* A place whose rule is known without an entry. */
struct landmark {
	uint64_t low;
	uint32_t size; /* bytes; 0 once it was seen */
	struct abi_unwind_rule rule;
};

/* Writes at most MAX to MARKS; returns how many, and leaves out code that it does not know. */
size_t plt_unwind(struct elf_image *image, struct landmark *marks, size_t max);
