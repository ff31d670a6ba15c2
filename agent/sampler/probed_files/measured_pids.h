/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The processes whose functions are measured, where not all are: those that the user named, or one
 * and its descendants. One thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/sampler.h"

struct measured_pids {
	bool is_filter; /* false: all processes, and the list is empty */
	uint32_t items[ABI_MAX_PIDS];
	size_t count;
	uint64_t refused; /* processes that found no room */
};

bool measured_pids_have(const struct measured_pids *pids, uint32_t pid);
/* Both return whether the list has changed. */
bool measured_pids_add(struct measured_pids *pids, uint32_t pid);
bool measured_pids_remove(struct measured_pids *pids, uint32_t pid);
