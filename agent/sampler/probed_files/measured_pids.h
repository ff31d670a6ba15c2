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

enum { MEASURED_PIDS_ENDING = 64 };

struct measured_pids {
	bool is_filter; /* false: all processes, and the list is empty */
	uint32_t items[ABI_MAX_PIDS];
	size_t count;
	uint64_t refused; /* processes that found no room */

	/* Private: those among them whose end was announced. */
	struct measured_pid_ending {
		uint32_t pid;
		unsigned int ticks; /* until it leaves the list */
	} ending[MEASURED_PIDS_ENDING];
	size_t ending_count;
};

bool measured_pids_have(const struct measured_pids *pids, uint32_t pid);
/* All others return whether the list has changed. */
bool measured_pids_add(struct measured_pids *pids, uint32_t pid);
bool measured_pids_remove(struct measured_pids *pids, uint32_t pid);
/*
 * The kernel has announced that PID's process ends, and goes on to call functions for it: it stays
 * in the list until the second tick from now, unless too many processes end at once.
 */
bool measured_pids_end(struct measured_pids *pids, uint32_t pid);
/* Another process has PID now: one that has ended leaves the list. */
bool measured_pids_begin(struct measured_pids *pids, uint32_t pid);
/* Call it about once a second. */
bool measured_pids_tick(struct measured_pids *pids);
