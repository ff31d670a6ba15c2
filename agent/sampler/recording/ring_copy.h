/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A ring in our own memory: what its reader sees changes only when bytes are appended, and not
 * whenever the kernel writes.
 */
#include "agent/sampler/collect/ring.h"

struct ring_copy {
	struct ring ring;
	uint8_t *data; /* owned, as is ring.control */
};

/* Makes a ring of SIZE_BYTES (a power of two); the other arguments are as in struct ring. */
int ring_copy_init(
	struct ring_copy *copy, uint64_t size_bytes, uint64_t behind_bytes, uint64_t room_bytes);
void ring_copy_deinit(struct ring_copy *copy);
/* Bytes that can be appended now. */
uint64_t ring_copy_left(const struct ring_copy *copy);
/* Appends one record, or any other bytes. What does not fit is cut off. */
void ring_copy_append(struct ring_copy *copy, const uint8_t *bytes, uint64_t size);
