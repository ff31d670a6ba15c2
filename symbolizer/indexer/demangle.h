/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Demangles linkage names: C++ (Itanium ABI) and Rust (v0 and legacy), by libiberty. Runs in the
 * sandbox: a demangler of foreign names is attack surface.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Suffix of stubs that jump to a function in another file; a linkage name precedes it. */
#define DEMANGLE_STUB "@plt"

/*
 * Appends the readable form of LINKAGE, without clone suffixes (`.isra.0`, `.cold` …), to OUT. If
 * LINKAGE is not mangled, cannot be demangled or exceeds the limits, appends it without the
 * suffixes.
 */
int demangle(const char *linkage, struct buffer *out);
/*
 * Like demangle(), but the name of a clone keeps its suffix: `f.part.0`, and `f(int) [clone
 * .part.0]` if LINKAGE is mangled, as c++filt writes it.
 */
int demangle_clone(const char *linkage, struct buffer *out);
bool demangle_is_mangled(const char *name);
/* Length of NAME without its clone suffixes. */
size_t demangle_plain_length(const char *name);
