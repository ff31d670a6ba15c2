/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the programs of a loaded BPF object count (bpf/stack.bpf.h), on each CPU. */
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sampler.h"

struct bpf_object;

struct object_counters {
	int map_fd; /* the object's */
	uint32_t slots; /* elements of the map, one for each slot of scratch memory */
	size_t cpus; /* possible ones */
	uint64_t *of_cpus; /* ABI_COUNTERS for each CPU, of the slot that was read last */
};

/* -EBADMSG: OBJECT has no such map. */
int object_counters_init(struct object_counters *ret_counters, const struct bpf_object *object);
void object_counters_deinit(struct object_counters *c);
/* Reads them, and adds those of all CPUs and slots to COUNTS. */
int object_counters_add(const struct object_counters *c, uint64_t counts[ABI_COUNTERS]);
/* COUNTER of one CPU as last read, for an object with one slot; 0 if there is no such CPU. */
uint64_t object_counters_of_cpu(const struct object_counters *c, int cpu, enum abi_counter counter);
