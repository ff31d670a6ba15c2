/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A bit for many pids, which spares the sampler most look-ups of programs that are none of Go's: it
 * is set as long as one of the processes whose bit it is, is one. The sampler reads the bits
 * without a lock.
 */
#include <stdint.h>

#include "bpf/abi/sampler.h"

struct go_hints {
	uint64_t *words; /* ABI_GO_HINTS bits, shared with the sampler */
	uint16_t counts[ABI_GO_HINTS]; /* how many processes each bit stands for */
};

/* Each process is added once before it is removed once. */
void go_hints_add(struct go_hints *h, uint32_t tgid);
void go_hints_remove(struct go_hints *h, uint32_t tgid);
