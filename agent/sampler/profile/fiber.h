/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a profile says of the fiber (goroutine) of a sample: what the thread did with it, which
 * fiber created it, and the labels that its program gave it. Where it was created is a stack of its
 * own (struct profile_sample).
 */
#include <stdbool.h>
#include <stdint.h>

/* Why labels are not in the facts, or not whole. */
enum profile_fiber_losses {
	PROFILE_FIBER_CUT = 1 << 0, /* too many, or too long */
	PROFILE_FIBER_UNREADABLE = 1 << 1, /* the program's memory, or the record */
	PROFILE_FIBER_RESERVED = 1 << 2, /* the key is a label of ours */
};

/* The text is valid as long as the table. */
struct profile_fiber_label {
	const char *key, *value; /* UTF-8; the key is not empty */
};

struct profile_fiber {
	uint64_t parent_id; /* the fiber that created it; 0 = none, or not known */
	uint16_t state; /* enum abi_fiber_state */
	uint16_t wait; /* why it waits, for struct runtime_fibers; 0 = it does not, or not known */
	const char *labels; /* for profile_fiber_next(); keys and values, each with its NUL */
	uint32_t label_count, label_bytes;
};

/* Whether samples have a label of that key already, of their process or of their own. */
bool profile_fiber_key_is_taken(const char *key);
/* Iterates over the labels of FIBER: *AT is NULL at first. Returns false at the end. */
bool profile_fiber_next(
	const struct profile_fiber *fiber, const char **at, struct profile_fiber_label *ret_label);
