/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was read of a file that only grows, in hashes, so that a later look can tell whether it
 * still begins with the same bytes. Inode and size do not tell: JITs cut their perf map and write
 * it anew, to the same length or a greater one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xxhash.h>

struct prefix {
	uint64_t bytes; /* that were read */
	uint64_t *blocks; /* a hash of each whole block */
	size_t block_count, block_capacity;
	size_t next; /* the block that is looked at next */
	XXH3_state_t *rest; /* of the bytes after the last whole block; NULL until there are any */
};

void prefix_deinit(struct prefix *p);
/* These bytes follow. -E2BIG: too many blocks. */
int prefix_add(struct prefix *p, const void *bytes, size_t size);
/*
 * Whether FD still begins with what was read. The first block and the end are looked at each time,
 * the blocks in between by turns, 1 MiB a time.
 */
bool prefix_is_same(struct prefix *p, int fd);
