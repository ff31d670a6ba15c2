/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which sets of processes each process generation is in, as BPF was told. BPF has one generation of
 * each pid: the newest of which the sets are known. After records were lost it takes a while until
 * it is known that a new generation is the same program; until then its calls are the old one's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct process_sets {
	struct map sets; /* generation → bits of sets, not 0 */
	struct map generations; /* pid → generation that BPF knows by it */
	size_t limit;
	uint64_t refused; /* processes that found no room */
	/* Tells BPF: SETS 0 = forgets TGID. Returns a negative errno. */
	int (*set)(void *context, uint32_t tgid, uint64_t sets, uint32_t number);
	void *context;
};

void process_sets_init(struct process_sets *s, size_t limit);
void process_sets_deinit(struct process_sets *s);
/* The sets of generation NUMBER; 0 = none. */
uint64_t process_sets_get(const struct process_sets *s, uint32_t number);
/*
 * Generation NUMBER of PID, its newest, is in SETS from now on. Returns those that are new. AGAIN:
 * if there is no room, that was counted before.
 */
uint64_t process_sets_put(
	struct process_sets *s, uint32_t pid, uint32_t number, uint64_t sets, bool again);
/* Generation NUMBER has ended, and PID is nobody's. */
void process_sets_end(struct process_sets *s, uint32_t pid, uint32_t number);
/* Removes a pid for which LIVES returns false: one at a time. */
void process_sets_sweep(
	struct process_sets *s, bool (*lives)(void *context, uint32_t pid), void *context);
/* Takes SETS away from all processes. */
void process_sets_clear(struct process_sets *s, uint64_t sets);
/* How many generations are in set NUMBER. */
size_t process_sets_count(const struct process_sets *s, uint32_t number);
