/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The toolchain of a program, for people and for labels: "GCC 12.2.0", "Clang 14.0.6", "Rust
 * 1.63.0". Comes from the language runtime's own version, else from .comment, which strip keeps.
 * Linked programs contain start-up code of another compiler, usually GCC, so any other compiler
 * wins over GCC.
 */
#include <stddef.h>

#include "symbolizer/indexer/elf/elf_image.h"

enum { TOOLCHAIN_BYTES = 48 };

/* NUL-terminated, plain ASCII; "" if unknown. */
void toolchain_read(struct elf_image *image, char text[TOOLCHAIN_BYTES]);
