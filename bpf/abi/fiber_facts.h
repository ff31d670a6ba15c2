/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * What a runtime says about a fiber beyond its id: what the thread does with it, where it comes
 * from, and the labels that the program gave it (Go's pprof labels). A record of its own, which
 * works as an abi_stack does: its id is a hash of the content, it is shipped once in a window, and
 * it comes before the samples that name it. Its head is that of an abi_stack, with words in place
 * of frames.
 */
#include "bpf/abi/sample.h"

enum {
	ABI_FIBER_LABELS = 10, /* at most */
	ABI_FIBER_KEY_BYTES = 64, /* a label with a longer key is left out */
	ABI_FIBER_VALUE_BYTES = 128, /* a longer value is cut */
	ABI_FIBER_VALUE_CUT = 255, /* value_bytes of a value that was cut to that length */
	ABI_FIBER_WORDS = 256, /* of content, at most */
};

enum abi_fiber_facts_flags {
	ABI_FIBER_CUT = 1 << 0, /* a label is missing or its value was cut: too many, too long */
	ABI_FIBER_UNREADABLE = 1 << 1, /* labels are missing that could not be read */
	ABI_FIBER_STATE_SHIFT = 2, /* bits from here on: enum abi_fiber_state */
	ABI_FIBER_STATE_MASK = 7 << ABI_FIBER_STATE_SHIFT,
	/*
	 * Bits from here on: why the fiber waits, 0 = it does not, or that is not known. The high
	 * bits are the runtime's version, which the reason's number is of.
	 */
	ABI_FIBER_WAIT_SHIFT = 5,
	ABI_FIBER_WAIT_REASON_BITS = 8,
	ABI_FIBER_WAIT_BITS = 16,
	ABI_FIBER_WAIT_MASK = ((1 << ABI_FIBER_WAIT_BITS) - 1) << ABI_FIBER_WAIT_SHIFT,
	ABI_FIBER_FACTS_MARK = 1 << 30, /* always: no stack has the same content */
};

/* On whose stack the thread runs. */
enum abi_fiber_state {
	ABI_FIBER_STATE_UNKNOWN = 0,
	ABI_FIBER_RUNS, /* the fiber's */
	ABI_FIBER_ON_THREAD_STACK, /* the thread's, for the fiber: the runtime's own work, or C */
	ABI_FIBER_ON_SIGNAL_STACK, /* that of signal handlers, which interrupted the fiber or none
				    */
	ABI_FIBER_NONE, /* the thread's, for no fiber: the scheduler */
	ABI_FIBER_STATES,
};

/* Before the bytes of the key, which the value's follow, not terminated. */
struct abi_fiber_label {
	abi_u8 key_bytes; /* 1 to ABI_FIBER_KEY_BYTES */
	abi_u8 value_bytes; /* 0 to ABI_FIBER_VALUE_BYTES, or ABI_FIBER_VALUE_CUT */
};

struct abi_fiber_facts {
	abi_u32 kind; /* ABI_FIBER_FACTS */
	abi_u32 flags; /* enum abi_fiber_facts_flags */
	abi_u64 id; /* a 64-bit hash of content and flags; never 0 */
	abi_u32 window;
	abi_u32 word_count; /* 64-bit words that follow: the content */
	/* The content. */
	abi_u64 parent_id; /* the fiber that created it; 0 = none, or not known */
	abi_u64 created_at; /* pc behind the call that created it; 0 = not known */
	abi_u64 start; /* pc of its first function; 0 = not known */
	abi_u32 label_count;
	abi_u32 label_bytes; /* of `labels`; zeros follow up to the next word */
	abi_u8 labels[]; /* struct abi_fiber_label each, in the runtime's order */
};

enum {
	ABI_FIBER_HEAD_BYTES = sizeof(struct abi_stack),
	ABI_FIBER_CONTENT_HEAD_WORDS = 4,
	ABI_FIBER_LABEL_BYTES =
		ABI_FIBER_LABELS *
		(sizeof(struct abi_fiber_label) + ABI_FIBER_KEY_BYTES + ABI_FIBER_VALUE_BYTES),
};

_Static_assert(sizeof(struct abi_fiber_label) == 2, "the ring's layout");
_Static_assert(sizeof(struct abi_fiber_facts) ==
		       ABI_FIBER_HEAD_BYTES + ABI_FIBER_CONTENT_HEAD_WORDS * sizeof(abi_u64),
	"the ring's layout");
_Static_assert(ABI_FIBER_LABEL_BYTES + 8 <=
		       (ABI_FIBER_WORDS - ABI_FIBER_CONTENT_HEAD_WORDS) * sizeof(abi_u64),
	"all labels fit");
_Static_assert((int)ABI_FIBER_WORDS == (int)ABI_MAX_FRAMES, "it fits where a stack does");
