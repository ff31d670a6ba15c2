/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/latency_probes/process_sets.h"

enum { AT_ONCE = 256 };

void process_sets_init(struct process_sets *s, size_t limit)
{
	*s = (struct process_sets){ .limit = limit };
	map_init(&s->sets, limit);
	map_init(&s->generations, limit);
}

void process_sets_deinit(struct process_sets *s)
{
	map_deinit(&s->sets);
	map_deinit(&s->generations);
}

uint64_t process_sets_get(const struct process_sets *s, uint32_t number)
{
	uint64_t sets;

	return map_get(&s->sets, number, &sets) ? sets : 0;
}

static void process_sets_remove(struct process_sets *s, uint32_t pid, uint32_t number)
{
	map_remove(&s->sets, number);
	map_remove(&s->generations, pid);
	(void)s->set(s->context, pid, 0, 0);
}

/* Tells BPF in place of what it knew of PID: generation KNOWN, 0 = nothing. */
static int process_sets_replace(
	struct process_sets *s, uint32_t pid, uint32_t known, uint32_t number, uint64_t sets)
{
	int err = map_set(&s->sets, number, sets);

	if (!err)
		err = map_set(&s->generations, pid, number);
	if (!err)
		err = s->set(s->context, pid, sets, number);
	if (known && known != number)
		map_remove(&s->sets, known);
	if (err)
		process_sets_remove(s, pid, number);
	return err;
}

uint64_t process_sets_put(
	struct process_sets *s, uint32_t pid, uint32_t number, uint64_t sets, bool again)
{
	uint64_t before = process_sets_get(s, number), known = 0;

	(void)map_get(&s->generations, pid, &known);
	if (sets == before && (!sets || known == number)) {
		if (known && known != number)
			process_sets_remove(s, pid, (uint32_t)known);
		return 0;
	}
	if (!sets) {
		process_sets_remove(s, pid, number);
		return 0;
	}
	if (process_sets_replace(s, pid, (uint32_t)known, number, sets)) {
		s->refused += !again;
		return 0;
	}
	return sets & ~before;
}

void process_sets_end(struct process_sets *s, uint32_t pid, uint32_t number)
{
	uint64_t known;

	if (map_get(&s->generations, pid, &known) && known == number)
		process_sets_remove(s, pid, number);
}

void process_sets_sweep(
	struct process_sets *s, bool (*lives)(void *context, uint32_t pid), void *context)
{
	uint64_t pid, number;
	size_t iterator = 0;
	uint32_t gone = 0;

	while (!gone && map_next(&s->generations, &iterator, &pid, &number))
		if (!lives(context, (uint32_t)pid))
			gone = (uint32_t)pid;
	if (gone && map_get(&s->generations, gone, &number))
		process_sets_remove(s, gone, (uint32_t)number);
}

/* Writes up to SIZE generations that are in one of SETS, and their pids; returns how many. */
static size_t process_sets_some(
	const struct process_sets *s, uint64_t sets, uint32_t *pids, uint32_t *numbers, size_t size)
{
	uint64_t pid, number;
	size_t iterator = 0, count = 0;

	while (count < size && map_next(&s->generations, &iterator, &pid, &number)) {
		if (!(process_sets_get(s, (uint32_t)number) & sets))
			continue;
		pids[count] = (uint32_t)pid;
		numbers[count++] = (uint32_t)number;
	}
	return count;
}

void process_sets_clear(struct process_sets *s, uint64_t sets)
{
	uint32_t pids[AT_ONCE], numbers[AT_ONCE];
	size_t count;

	/* The maps must not change while they are read. */
	while ((count = process_sets_some(s, sets, pids, numbers, AT_ONCE)) > 0)
		for (size_t i = 0; i < count; i++)
			process_sets_put(s, pids[i], numbers[i],
				process_sets_get(s, numbers[i]) & ~sets, true);
}

size_t process_sets_count(const struct process_sets *s, uint32_t number)
{
	uint64_t generation, sets;
	size_t iterator = 0, count = 0;

	while (map_next(&s->sets, &iterator, &generation, &sets))
		count += sets >> number & 1;
	return count;
}
