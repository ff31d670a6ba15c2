/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Linkage names made readable: C++ (Itanium ABI) and Rust (v0 and legacy), by libiberty. Runs in
 * the sandbox: a demangler over foreign names is attack surface.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Ends the name of what jumps to a function in another file; what is before it is a linkage name.
 */
#define DEMANGLE_STUB "@plt"

/*
 * Appends the readable form of LINKAGE to OUT, clone suffixes (`.isra.0`, `.cold` …) stripped;
 * LINKAGE itself, less its suffixes, where it is not mangled or cannot be read. Names over the
 * limits stay mangled.
 */
int demangle(const char *linkage, struct buffer *out);
bool demangle_is_mangled(const char *name);
/* Length of NAME without its clone suffixes. */
size_t demangle_plain_length(const char *name);
