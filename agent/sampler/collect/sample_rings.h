/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rings that BPF writes without perf, one per CPU (bpf/abi/sample_ring.h). A ring stays mapped
 * when its CPU goes offline, and is used again when that comes back. Knows nothing of the records
 * in them.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/collect/ring.h"

struct sample_rings {
	int fd; /* of the map; borrowed */
	uint64_t bytes; /* of data in each */
	struct ring
		*rings; /* by the CPU's number; those of CPUs that are not sampled are not mapped */
	size_t count; /* 0 = none: samples are in the rings of perf events */
};

/* The rings are the COUNT elements of map FD, with BYTES of data each. */
int sample_rings_init(struct sample_rings *s, int fd, uint64_t bytes, size_t count);
void sample_rings_deinit(struct sample_rings *s);
/* Maps the ring of CPU, if it has one that is not mapped yet. */
int sample_rings_open(struct sample_rings *s, int cpu);
/* Writes the mapped rings to TO, which has room for `count`. Returns their number. */
size_t sample_rings_list(struct sample_rings *s, struct ring **to);
