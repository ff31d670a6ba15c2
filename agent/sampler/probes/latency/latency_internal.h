/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this room share. */
#include "agent/sampler/probes/latency/latency.h"

struct latency_function {
	bool used;
	uint32_t thin_shift, largest_shift;
	uint64_t entries; /* calls that had begun when latency_tick() last looked */
	struct abi_latency_function abi; /* as BPF has it */
};

struct latency {
	struct latency_options options; /* defaults filled in */
	/* Descriptors, of the object. */
	int program;
	int functions_map, entries_map, open_map, cells_map, counters_map;
	bool at_once; /* latency_attaches_at_once() */
	int event_type; /* of an event for one site */
	size_t cpus; /* possible ones */
	struct latency_function *functions;
	uint32_t count; /* of `functions`; unused ones included */
	uint32_t *free; /* numbers of unused ones */
	size_t free_count, free_capacity;
	uint64_t ticked_ns; /* when the rates were last computed; 0 = never */
	uint32_t sweep_place; /* in the map of open calls; 0 = at its beginning */
	uint64_t open_full; /* as last seen: latency_counts.open_full */
	uint64_t swept, evicted;
};

/* Writes function NUMBER to BPF. */
int latency_function_write(struct latency *l, uint32_t number);

/* Forgets the cells and open calls of all functions that are not used. */
int latency_forget_unused(const struct latency *l);

/* Adjusts the share of each function's calls that is measured; PASSED_NS since the last time. */
void latency_thin(struct latency *l, uint64_t passed_ns);

/* Looks at some of the open calls, and forgets those that have ended. */
void latency_sweep(struct latency *l);
