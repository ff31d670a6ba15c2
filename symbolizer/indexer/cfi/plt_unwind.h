/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Unwind rules of the procedure linkage table, for linkers that write no entries for it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/unwind.h"
#include "symbolizer/indexer/elf/elf_image.h"

/* Code whose rule is known otherwise than from an entry. */
struct landmark {
	uint64_t low;
	uint32_t size; /* bytes; 0 = none, or already used */
	bool has_entry; /* of call frame information, which is wrong and to be ignored */
	struct abi_unwind_rule rule;
};

/* Whether SECTION has stubs of the procedure linkage table, by its name. */
bool plt_unwind_has_stubs(const struct elf_section *section);
/* Writes at most MAX landmarks to MARKS and returns how many. Skips code that it does not know. */
size_t plt_unwind(struct elf_image *image, struct landmark *marks, size_t max);
