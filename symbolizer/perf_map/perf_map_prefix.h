/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hashes of what was read from an append-only file, to detect later whether it still begins with
 * the same bytes. Inode and size are not enough: JITs truncate their perf map and rewrite it to the
 * same or a greater length.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xxhash.h>

struct prefix {
	uint64_t bytes; /* bytes read */
	uint64_t *blocks; /* a hash of each whole block */
	size_t block_count, block_capacity;
	size_t next; /* the block checked last, in rotation */
	XXH3_state_t *rest; /* hash of the bytes after the last whole block; NULL = none yet */
};

void prefix_deinit(struct prefix *p);
/* Adds the next bytes. Returns -E2BIG if there are too many blocks. */
int prefix_add(struct prefix *p, const void *bytes, size_t size);
/*
 * Returns true if FD still begins with what was read. Checks the first block and the tail each
 * time, and the blocks in between in rotation, 1 MiB per call.
 */
bool prefix_is_same(struct prefix *p, int fd);
