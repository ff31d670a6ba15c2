/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether BPF can read this kernel's tree of mappings (bpf/unwind/vma.bpf.h): it is asked for
 * mappings of our own, which /proc/self/maps tells as well.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/kernel_types.h"

struct abi_mapping;

/* 0; -EOPNOTSUPP: it cannot, or tells something else. TYPES may be NULL. */
int mapping_probe(struct kernel_types *types);
/* What /proc/self/maps says of ADDRESS, but for the file's identity; false: nothing. */
bool mapping_probe_own(uint64_t address, struct abi_mapping *ret_mapping);
/* Of this kernel's pages: their size is 1 << it. */
uint32_t mapping_probe_page_shift(void);
