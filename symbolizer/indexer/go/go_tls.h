/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where a Go program keeps g: at an offset from the thread pointer, or in a register. */
#include <stdint.h>

#include "symbolizer/indexer/go/gopclntab.h"

/*
 * Gets the offset of g from the thread pointer, or ABI_GO_G_IN_REGISTER. Returns -EOPNOTSUPP if it
 * is unknown or was not fixed when the program was linked.
 */
int go_tls_offset(struct elf_image *image, int64_t *ret_offset);

/*
 * Get the offset from the program's code. Return -ENOENT if the function to decode does not exist,
 * -EOPNOTSUPP if its code has an unknown form.
 */
int go_tls_amd64(const struct gopclntab *table, int64_t *ret_offset);
int go_tls_arm64(const struct gopclntab *table, int64_t *ret_offset);
