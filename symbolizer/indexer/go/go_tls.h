/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where a Go program keeps g: the offset from the thread pointer, or in a register. */
#include <stdint.h>

#include "symbolizer/indexer/go/gopclntab.h"

/*
 * Or ABI_GO_G_IN_REGISTER. -EOPNOTSUPP: not in thread-local storage at a place fixed when the
 * program was linked.
 */
int go_tls_offset(struct elf_image *image, int64_t *ret_offset);

/*
 * From the program's own code, which always knows. -ENOENT where the function that is looked at
 * does not exist, -EOPNOTSUPP where it is written in a way not known.
 */
int go_tls_amd64(const struct gopclntab *table, int64_t *ret_offset);
int go_tls_arm64(const struct gopclntab *table, int64_t *ret_offset);
