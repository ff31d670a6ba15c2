/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bits that spare BPF most map lookups of processes without a runtime. Many pids share a bit; it is
 * set as long as one of these processes has a runtime. BPF reads the bits without a lock.
 */
#include <stdint.h>

#include "bpf/abi/sampler.h"

struct runtime_hints {
	uint64_t *words; /* ABI_RUNTIME_HINTS bits, shared with BPF */
	uint16_t counts[ABI_RUNTIME_HINTS]; /* processes with a runtime per bit */
};

/* Add each process once, then remove it once. */
void runtime_hints_add(struct runtime_hints *h, uint32_t tgid);
void runtime_hints_remove(struct runtime_hints *h, uint32_t tgid);
