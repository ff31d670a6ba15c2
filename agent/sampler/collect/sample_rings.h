/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rings that the sampler writes by itself, one a CPU, as bpf/abi/sample_ring.h has them. A ring
 * stays where it is when its CPU goes, and is there when it comes back. Knows nothing of what is in
 * them.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/collect/ring.h"

struct sample_rings {
	int fd; /* of the map; borrowed */
	uint64_t bytes; /* of data in each */
	struct ring
		*rings; /* by the CPU's number; those of CPUs that are not sampled are not mapped */
	size_t count; /* 0 = there are none: samples are in the rings of perf events */
};

/* Of the COUNT elements of map FD, with BYTES of data each. */
int sample_rings_init(struct sample_rings *s, int fd, uint64_t bytes, size_t count);
void sample_rings_deinit(struct sample_rings *s);
/* Maps the ring of CPU, if it has one and if that was not done. */
int sample_rings_open(struct sample_rings *s, int cpu);
/* Appends those that are mapped to TO, which has room for `count`; returns how many. */
size_t sample_rings_list(struct sample_rings *s, struct ring **to);
