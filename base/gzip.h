/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* gzip (RFC 1952) of whole buffers; what comes out is bounded by the limit of the buffer. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

bool gzip_is(const void *bytes, size_t size);
/*
 * Appends what the members of BYTES hold, one after the other. -EBADMSG: no gzip, or a broken one;
 * -E2BIG: more than OUT takes; -ENOMEM. On failure OUT may have grown.
 */
int gzip_inflate(const void *bytes, size_t size, struct buffer *out);
/* Appends one member. LEVEL from 1 (fast) to 9. */
int gzip_deflate(const void *bytes, size_t size, int level, struct buffer *out);
