/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this room share. */
#include "agent/sampler/collect/object_counters.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/latency/sites.h"
#include "agent/sampler/probes/latency/trap_cost.h"

struct latency_function {
	bool used;
	bool ended; /* its cells stay, though nothing is measured any more */
	uint32_t thin_shift, largest_shift;
	uint64_t entries; /* calls that had begun when latency_tick() last looked */
	struct abi_latency_function abi; /* as BPF has it */
};

struct latency {
	struct latency_options options; /* defaults filled in */
	/* Descriptors, of the object. */
	int program;
	int functions_map, entries_map, open_map, cells_map, processes_map;
	struct object_counters counters;
	bool at_once; /* latency_attaches_at_once() */
	uint32_t only_tgid; /* sites are attached in this process only; 0 = in all */
	int event_type; /* of an event for one site */
	bool cookie_in_path; /* of these events: bpf/abi/site_path.h */
	size_t cpus; /* possible ones */
	struct latency_function *functions;
	uint32_t count; /* of `functions`; unused ones included */
	uint32_t *free; /* numbers of unused ones */
	size_t free_count, free_capacity;
	uint64_t ticked_ns; /* when the rates were last computed; 0 = never */
	uint32_t sweep_place; /* in the map of open calls; 0 = at its beginning */
	uint64_t open_full; /* as last seen: latency_counts.open_full */
	uint64_t swept, evicted;
	unsigned int attachers; /* processes that attach, or were told to die */
	struct trap_cost *trap;
};

/* Writes function NUMBER to BPF. */
int latency_function_write(struct latency *l, uint32_t number);

/* Sums of all CPUs. Returns a negative errno. */
int latency_read_entries(
	const struct latency *l, uint32_t number, struct abi_latency_entries *ret_entries);

/* Forgets the cells and open calls of all functions that are not used. */
int latency_forget_unused(const struct latency *l);

/* Adjusts the share of each function's calls that is measured; PASSED_NS since the last time. */
void latency_thin(struct latency *l, uint64_t passed_ns);

/* Looks at some of the open calls, and forgets those that have ended. */
void latency_sweep(struct latency *l);

/* ---- attaching, in this process and in others ------------------------------------------------ */

struct sites_program latency_sites_program(const struct latency *l);
/*
 * The places of SITES in the order in which they are attached, *COUNT of them; those that are there
 * twice are left out, and noted in REFUSED.
 */
int latency_places(const struct latency *l, const struct latency_site *sites, size_t *count,
	struct sites *refused, struct sites_place **ret_places);
/* Takes SITES. */
int latency_attached_create(struct sites *sites, struct latency_attached **ret_attached);
/*
 * Frees all of LIST (NULLs are allowed) but the links, which are returned. NULL: memory is short,
 * and nothing happened.
 */
int *latency_take_links(struct latency_attached **list, size_t count, size_t *ret_count);
