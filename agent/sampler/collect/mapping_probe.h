/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks whether BPF can read this kernel's VMA tree (bpf/unwind/vma.bpf.h): looks up some of our
 * own mappings and compares the results with /proc/self/maps.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/kernel_types.h"

struct abi_mapping;

/* Returns 0, or -EOPNOTSUPP if BPF cannot or finds something else. TYPES may be NULL. */
int mapping_probe(struct kernel_types *types);
/*
 * The mapping of ADDRESS in /proc/self/maps, without the file's identity. Returns false if there
 * is none.
 */
bool mapping_probe_own(uint64_t address, struct abi_mapping *ret_mapping);
/* log2 of this kernel's page size. */
uint32_t mapping_probe_page_shift(void);
