/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where Go code keeps g: at an offset from the thread pointer, or in a register. */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/go/gopclntab.h"

struct go_tls {
	/*
	 * ELF address of the word in which the dynamic linker stores the offset (a shared library);
	 * 0 = the offset was fixed when the program was linked.
	 */
	uint64_t word;
	int64_t offset; /* of g from the thread pointer, or ABI_GO_G_IN_REGISTER */
};

/* Returns -EOPNOTSUPP if it is unknown. */
int go_tls_find(struct elf_image *image, struct go_tls *ret_tls);

/* Whether the dynamic linker may store an offset at ELF address ADDRESS. */
bool go_tls_is_word(const struct elf_image *image, uint64_t address);

/*
 * Find it in the program's code. Return -ENOENT if the function to decode does not exist,
 * -EOPNOTSUPP if its code has an unknown form.
 */
int go_tls_amd64(const struct gopclntab *table, struct go_tls *ret_tls);
int go_tls_arm64(const struct gopclntab *table, struct go_tls *ret_tls);
