/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The labels that programs give to their fibers (goroutines) and that --series-labels makes labels
 * of series: their keys, and the names that series have them under. Programs use any text for a
 * key, servers accept [a-zA-Z_][a-zA-Z0-9_]*: all other bytes become _.
 */
#include <stddef.h>

#include "agent/sampler/profile/fiber.h"
#include "bpf/abi/fiber_facts.h"

struct fiber_key {
	char key[ABI_FIBER_KEY_BYTES + 1];
	char name[ABI_FIBER_KEY_BYTES + 2]; /* of the label of the series */
};

/* All zero is a valid empty set. */
struct fiber_keys {
	struct fiber_key of[ABI_FIBER_LABELS];
	size_t count;
};

/* Adds KEY, unless it is there. Returns NULL, or why series cannot have that label. */
const char *fiber_keys_add(struct fiber_keys *keys, const char *key);
/* Sets RET_VALUES to what FIBER has under each of KEYS, "" = nothing. Valid as long as FIBER's
 * text. */
void fiber_keys_values(const struct fiber_keys *keys, const struct profile_fiber *fiber,
	const char *ret_values[ABI_FIBER_LABELS]);
