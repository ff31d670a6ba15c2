/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/samples/stack_chunks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* The kernel relies on a chunk for a second, and its samples may be read a second later. */
enum { KEPT_TICKS = 3 };

void stack_chunks_init(struct stack_chunks *c, size_t limit_bytes)
{
	*c = (struct stack_chunks){ 0 };
	map_init(&c->by_id, limit_bytes / ABI_UNFINISHED_CHUNK_BYTES);
}

void stack_chunks_deinit(struct stack_chunks *c)
{
	struct stack_chunk *chunk;

	while ((chunk = c->all) != NULL) {
		assert(!chunk->refs);
		c->all = chunk->next;
		free(chunk);
	}
	map_deinit(&c->by_id);
}

int stack_chunks_add(struct stack_chunks *c, const struct abi_chunk *chunk)
{
	struct stack_chunk *known = stack_chunks_get(c, chunk->id);
	autofree struct stack_chunk *new = NULL;
	int err;

	if (known) {
		known->tick = c->tick;
		return 0;
	}
	new = malloc(sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->id = chunk->id;
	new->refs = 0;
	new->tick = c->tick;
	memcpy(new->bytes, chunk->bytes, sizeof(new->bytes));
	err = map_set_pointer(&c->by_id, chunk->id, new);
	if (err)
		return err;
	new->next = c->all;
	c->all = take(new);
	return 0;
}

struct stack_chunk *stack_chunks_get(const struct stack_chunks *c, uint64_t id)
{
	return map_get_pointer(&c->by_id, id);
}

void stack_chunk_ref(struct stack_chunk *chunk)
{
	chunk->refs++;
}

void stack_chunk_unref(struct stack_chunk *chunk)
{
	assert(chunk->refs);
	chunk->refs--;
}

void stack_chunks_tick(struct stack_chunks *c)
{
	struct stack_chunk **at = &c->all, *chunk;

	c->tick++;
	while ((chunk = *at) != NULL) {
		if (chunk->refs || c->tick - chunk->tick <= KEPT_TICKS) {
			at = &chunk->next;
			continue;
		}
		*at = chunk->next;
		(void)map_remove(&c->by_id, chunk->id);
		free(chunk);
	}
	map_trim(&c->by_id);
}
