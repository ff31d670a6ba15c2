/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Raw stacks as BPF shipped them, by the window and id that samples refer to them with. Two windows
 * are kept, because the CPUs switch to a new window one after another.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "bpf/abi/sample.h"

enum { RAW_WINDOWS = 2 };

struct raw_window {
	uint32_t window; /* 0 = free */
	struct map stacks; /* id → struct abi_stack in `bytes` */
	struct arena bytes;
};

struct raw_stacks {
	struct raw_window windows[RAW_WINDOWS];
};

/* At most LIMIT_BYTES of frames per window. */
void raw_stacks_init(struct raw_stacks *r, size_t limit_bytes);
void raw_stacks_deinit(struct raw_stacks *r);
/*
 * Keeps a copy of STACK. A new window replaces the oldest. Returns -ENOENT if STACK's window is
 * older than all kept ones, -E2BIG if all windows together take LIMIT_BYTES already.
 */
int raw_stacks_put(struct raw_stacks *r, const struct abi_stack *stack, size_t limit_bytes);
const struct abi_stack *raw_stacks_get(const struct raw_stacks *r, uint32_t window, uint64_t id);
/* Forgets windows before WINDOW. */
void raw_stacks_drop(struct raw_stacks *r, uint32_t window);
size_t raw_stacks_bytes(const struct raw_stacks *r);
