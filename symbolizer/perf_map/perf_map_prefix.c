/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/perf_map/perf_map_prefix.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/foreign.h"

enum {
	BLOCK_BYTES = 64 * 1024,
	BLOCKS_AT_ONCE = 16,
	MAX_BLOCKS = 1 << 20, /* 64 GiB */
};

void prefix_deinit(struct prefix *p)
{
	free(p->blocks);
	XXH3_freeState(p->rest);
	*p = (struct prefix){ 0 };
}

static int prefix_begin_block(struct prefix *p)
{
	if (!p->rest)
		p->rest = XXH3_createState();
	if (!p->rest)
		return -ENOMEM;
	XXH3_64bits_reset(p->rest);
	return 0;
}

static int prefix_end_block(struct prefix *p)
{
	int err = array_reserve(p->blocks, p->block_capacity, p->block_count + 1, MAX_BLOCKS);

	if (!err)
		p->blocks[p->block_count++] = XXH3_64bits_digest(p->rest);
	return err;
}

int prefix_add(struct prefix *p, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	int err = 0;

	while (size && !err) {
		size_t in_block = p->bytes % BLOCK_BYTES;
		size_t part = MIN(size, BLOCK_BYTES - in_block);

		if (!in_block)
			err = prefix_begin_block(p);
		if (err)
			return err;
		XXH3_64bits_update(p->rest, at, part);
		if (in_block + part == BLOCK_BYTES)
			err = prefix_end_block(p);
		p->bytes += part;
		at += part;
		size -= part;
	}
	return err;
}

static bool is_block_same(int fd, uint64_t off, size_t size, uint64_t hash, uint8_t *room)
{
	return foreign_read_at(fd, off, room, size) == (ssize_t)size &&
	       XXH3_64bits(room, size) == hash;
}

static bool is_whole_block_same(const struct prefix *p, int fd, size_t block, uint8_t *room)
{
	return is_block_same(
		fd, (uint64_t)block * BLOCK_BYTES, BLOCK_BYTES, p->blocks[block], room);
}

static bool is_rest_same(const struct prefix *p, int fd, uint8_t *room)
{
	size_t size = p->bytes % BLOCK_BYTES;

	return !size || is_block_same(fd, p->bytes - size, size, XXH3_64bits_digest(p->rest), room);
}

bool prefix_is_same(struct prefix *p, int fd)
{
	autofree uint8_t *room = malloc(BLOCK_BYTES);

	if (!room || !is_rest_same(p, fd, room))
		return false;
	if (p->block_count && !is_whole_block_same(p, fd, 0, room))
		return false;
	for (int i = 0; p->block_count && i < BLOCKS_AT_ONCE; i++) {
		p->next = (p->next + 1) % p->block_count;
		if (!is_whole_block_same(p, fd, p->next, room))
			return false;
		if (p->next == 0)
			break;
	}
	return true;
}
