/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether BPF can read this kernel's tree of mappings (bpf/vma.bpf.h): it is asked for mappings of
 * our own, which /proc/self/maps tells as well.
 */
#include <stdint.h>

#include "agent/collect/kernel_types.h"

/* 0; -EOPNOTSUPP: it cannot, or tells something else. TYPES may be NULL. */
int mapping_probe(struct kernel_types *types);
/* Of this kernel's pages: their size is 1 << it. */
uint32_t mapping_probe_page_shift(void);
