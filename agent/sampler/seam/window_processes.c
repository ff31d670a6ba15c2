/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/seam/window_processes.h"

#include <assert.h>
#include <string.h>

enum {
	MAX_PROCESSES = 1 << 20,
	MAX_BYTES = 256 << 20,
};

void window_processes_init(struct window_processes *w)
{
	w->began_ns = 0;
	map_init(&w->by_number, MAX_PROCESSES);
	arena_init(&w->memory, MAX_BYTES);
}

void window_processes_deinit(struct window_processes *w)
{
	map_deinit(&w->by_number);
	arena_deinit(&w->memory);
}

int window_processes_add(struct window_processes *w, const struct process_facts *facts)
{
	const char *path = facts->program_path;
	struct process_facts *copy;

	assert(!window_processes_find(w, facts->number));
	copy = arena_alloc(&w->memory, sizeof(*copy));
	if (!copy)
		return w->memory.error;
	*copy = *facts;
	copy->program_path = arena_strndup(&w->memory, path, strlen(path));
	if (!copy->program_path)
		return w->memory.error;
	return map_set_pointer(&w->by_number, facts->number, copy);
}

const struct process_facts *window_processes_find(const struct window_processes *w, uint32_t number)
{
	return map_get_pointer(&w->by_number, number);
}
