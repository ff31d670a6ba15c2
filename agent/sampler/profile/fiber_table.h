/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Distinct facts about fibers (goroutines), numbered from 1: where they come from, and the labels
 * that their program gave them. These are foreign text: keys and values become UTF-8, and a key
 * that is one of our own labels is refused, so that no program can name another pid. Labels are in
 * the order of their keys, whatever order the runtime had them in.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/fiber.h"
#include "base/intern.h"
#include "base/map.h"
#include "bpf/abi/fiber_facts.h"

struct fiber_table {
	struct intern contents;
	struct map numbers; /* id in the ring → number | losses << 32 */
};

void fiber_table_init(struct fiber_table *t);
void fiber_table_deinit(struct fiber_table *t);
/*
 * Sets *RET_NUMBER to that of FACTS, which are added if new; 0 if nothing is left of them. Sets
 * *RET_LOSSES to enum profile_fiber_losses either way. Returns -E2BIG if the table takes
 * LIMIT_BYTES already.
 */
int fiber_table_get(struct fiber_table *t, const struct abi_fiber_facts *facts, size_t limit_bytes,
	uint32_t *ret_number, uint32_t *ret_losses);
/* Sets *RET_NUMBER to that of what FROM has as NUMBER; 0 if it has nothing. -E2BIG as above. */
int fiber_table_copy(struct fiber_table *t, const struct fiber_table *from, uint32_t number,
	size_t limit_bytes, uint32_t *ret_number);
/* All zero for 0 and for unknown numbers. */
struct profile_fiber fiber_table_at(const struct fiber_table *t, uint32_t number);
size_t fiber_table_count(const struct fiber_table *t);
size_t fiber_table_bytes(const struct fiber_table *t);
