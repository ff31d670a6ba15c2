/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The probes that the options ask for, loaded with the maps that they share. All walk stacks in the
 * best way that this kernel's verifier and memory allow for every one of them. Knows nothing of
 * perf events and rings; identifies programs by descriptor.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/ring_sizes.h"
#include "agent/sampler/collect/shared_maps.h"

struct bpf_object;
struct probe_set;

/* Errors and *RET_STEP are those of collect_create(). */
int probe_set_load(const struct collect_options *options, const struct ring_sizes *sizes,
	struct probe_set **ret_set, const char **ret_step);
void probe_set_unload(struct probe_set *s);
/*
 * Loads the probe NAME as well, as the others were: it walks stacks as they do. OPTIONS are those
 * of the others, but want it. Errors are those of probe_set_load().
 */
int probe_set_add(struct probe_set *s, const struct collect_options *options, const char *name,
	const char **ret_step);
/* Unloads the probe NAME, which is not attached. What it has counted stays in the sums. */
void probe_set_remove(struct probe_set *s, const char *name);
struct shared_maps *probe_set_maps(const struct probe_set *s);
/* Descriptor of the program for sampling events. Returns -ENOENT if no probe has one. */
int probe_set_event_program(const struct probe_set *s);
/* Runs of that program on CPU until probe_set_counters() was last called; 0 if there is none. */
uint64_t probe_set_event_runs(const struct probe_set *s, int cpu);
/* Attaches or detaches all probes but the one for sampling events. */
int probe_set_attach(struct probe_set *s, bool on);
/* Sums over all probes and CPUs. */
int probe_set_counters(const struct probe_set *s, uint64_t ret_counts[ABI_COUNTERS]);
/* Adds to METRICS what the probes alone lost; COUNTS is what BPF has counted since the last call.
 */
void probe_set_count_losses(
	const struct probe_set *s, const uint64_t counts[ABI_COUNTERS], struct metrics *metrics);
uint64_t probe_set_memory(const struct probe_set *s); /* bytes of all maps */
/* The loaded object of the probe NAME. Returns NULL if that is not wanted. */
struct bpf_object *probe_set_object(const struct probe_set *s, const char *name);
