/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/profile/raw_stacks.h"

#include <errno.h>
#include <string.h>

enum {
	MIN_STACK_BYTES = sizeof(struct abi_stack) + sizeof(abi_u64),
	MAP_SLOT_BYTES = 24, /* of base/map.h, for accounting */
};

void raw_stacks_init(struct raw_stacks *r, size_t limit_bytes)
{
	for (int i = 0; i < RAW_WINDOWS; i++) {
		r->windows[i].window = 0;
		map_init(&r->windows[i].stacks, limit_bytes / MIN_STACK_BYTES + 1);
		arena_init(&r->windows[i].bytes, limit_bytes);
	}
}

static void clear(struct raw_window *w)
{
	w->window = 0;
	map_clear(&w->stacks);
	arena_reset(&w->bytes);
}

void raw_stacks_deinit(struct raw_stacks *r)
{
	for (int i = 0; i < RAW_WINDOWS; i++) {
		map_deinit(&r->windows[i].stacks);
		arena_deinit(&r->windows[i].bytes);
	}
}

static const struct raw_window *find_window(const struct raw_stacks *r, uint32_t window)
{
	for (int i = 0; i < RAW_WINDOWS; i++) {
		if (r->windows[i].window == window)
			return &r->windows[i];
	}
	return NULL;
}

/*
 * The slot of WINDOW: its own, else that of the oldest, which is dropped. NULL if WINDOW is older.
 */
static struct raw_window *make_window(struct raw_stacks *r, uint32_t window)
{
	struct raw_window *oldest = &r->windows[0];

	for (int i = 0; i < RAW_WINDOWS; i++) {
		if (r->windows[i].window == window)
			return &r->windows[i];
		if (r->windows[i].window < oldest->window)
			oldest = &r->windows[i];
	}
	if (oldest->window > window)
		return NULL;
	clear(oldest);
	oldest->window = window;
	return oldest;
}

int raw_stacks_put(struct raw_stacks *r, const struct abi_stack *stack, size_t limit_bytes)
{
	struct raw_window *w;
	struct abi_stack *copy;
	size_t size;

	if (stack->window == 0 || stack->id == 0 || stack->frame_count > ABI_MAX_FRAMES)
		return -EINVAL;
	w = make_window(r, stack->window);
	if (!w)
		return -ENOENT;
	if (map_get_pointer(&w->stacks, stack->id))
		return 0;
	if (raw_stacks_bytes(r) >= limit_bytes)
		return -E2BIG;
	size = sizeof(*stack) + stack->frame_count * sizeof(stack->frames[0]);
	copy = arena_alloc(&w->bytes, size);
	if (!copy)
		return w->bytes.error;
	memcpy(copy, stack, size);
	return map_set_pointer(&w->stacks, stack->id, copy);
}

const struct abi_stack *raw_stacks_get(const struct raw_stacks *r, uint32_t window, uint64_t id)
{
	const struct raw_window *w = window ? find_window(r, window) : NULL;

	return w ? map_get_pointer(&w->stacks, id) : NULL;
}

void raw_stacks_drop(struct raw_stacks *r, uint32_t window)
{
	for (int i = 0; i < RAW_WINDOWS; i++) {
		if (r->windows[i].window < window)
			clear(&r->windows[i]);
	}
}

size_t raw_stacks_bytes(const struct raw_stacks *r)
{
	size_t bytes = 0;

	for (int i = 0; i < RAW_WINDOWS; i++)
		bytes += r->windows[i].bytes.total_bytes +
			 r->windows[i].stacks.capacity * MAP_SLOT_BYTES;
	return bytes;
}
