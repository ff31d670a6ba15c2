/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* base64 (RFC 4648, section 4, with padding). */
#include <stddef.h>

#include "base/buffer.h"

/* Appends BYTES, encoded; a failure is B's `error`. */
void base64_append(struct buffer *b, const void *bytes, size_t size);
