/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A bit for many pids, which spares the sampler most look-ups of processes without a runtime: it is
 * set as long as one of the processes that share it has one. The sampler reads the bits without a
 * lock.
 */
#include <stdint.h>

#include "bpf/abi/sampler.h"

struct runtime_hints {
	uint64_t *words; /* ABI_RUNTIME_HINTS bits, shared with the sampler */
	uint16_t counts[ABI_RUNTIME_HINTS]; /* how many processes each bit stands for */
};

/* Each process is added once before it is removed once. */
void runtime_hints_add(struct runtime_hints *h, uint32_t tgid);
void runtime_hints_remove(struct runtime_hints *h, uint32_t tgid);
