/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* gzip (RFC 1952) of whole buffers. Output is bounded by the limit of the buffer it goes to. */
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

bool gzip_is(const void *bytes, size_t size);
/*
 * Appends the decompressed members of BYTES in order. Returns -EBADMSG if BYTES is not valid gzip,
 * -E2BIG over OUT's limit, or -ENOMEM. On failure OUT may hold the members decompressed so far.
 */
int gzip_inflate(const void *bytes, size_t size, struct buffer *out);
/* Appends BYTES as one member. LEVEL is 1 (fast) to 9. Returns -E2BIG over OUT's limit, or -ENOMEM.
 */
int gzip_deflate(const void *bytes, size_t size, int level, struct buffer *out);
