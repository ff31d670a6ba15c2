/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Profiles of other tools that are text: what `perf script` prints, and collapsed stacks
 * (`main;work;inner 12`, as flamegraph.pl reads them). They become pprof.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

/* Whether BYTES may be such a text; binary files are not. */
bool text_profile_is(const void *bytes, size_t size);
/*
 * Appends TEXT's samples to OUT as pprof (gzip). Returns -EBADMSG if it is no such text, with a
 * constant string in *RET_WHY; else as pprof.h.
 */
int text_profile_read(const void *text, size_t size, struct buffer *out, const char **ret_why);
