/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Adds raw stacks, as BPF sends them, to a profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sampler/profile/profile.h"

/* HEAD has window, id and flags (enum abi_stack_flags); COUNT FRAMES follow it. */
static inline void put_raw_frames(struct profile *profile, const struct abi_stack *head,
	const uint64_t *frames, uint32_t count)
{
	struct abi_stack *stack = calloc(1, sizeof(*stack) + count * sizeof(stack->frames[0]));

	assert_non_null(stack);
	*stack = *head;
	stack->kind = ABI_STACK;
	stack->frame_count = count;
	for (uint32_t i = 0; i < count; i++)
		stack->frames[i] = frames[i];
	assert_int_equal(profile_put_raw(profile, stack), 0);
	free(stack);
}

#define put_raw(profile, window_, id_, flags_, ...)                                         \
	put_raw_frames(profile,                                                             \
		&(struct abi_stack){ .window = (window_), .id = (id_), .flags = (flags_) }, \
		(const uint64_t[]){ __VA_ARGS__ },                                          \
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))
