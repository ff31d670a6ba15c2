/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What threads waited for. BPF sends the stack of a thread that leaves the CPU (abi_switch_out) and
 * the length of the wait when it runs again (abi_wake, bpf/probes/off_cpu.bpf.c); this room joins
 * the two into one sample of a profile. They may come in either order, since the walk of a stack
 * may be finished late:
 *
 *     left ──▶ BEGUN ──resolved──▶ RESOLVED ──woke──▶ counted, in the window in which it ends
 *                └──────woke─────▶ ENDED ──resolved──▶ counted, in the window in which it began
 *
 * The stack is resolved with the mappings of the time it was taken, into that time's window. When
 * that window is sealed, the stacks of threads that still wait are copied into the next one. Waits
 * that have not ended at the very end are in no profile, since their length is not known. A wait
 * whose end was lost is replaced by the thread's next one.
 *
 * Does not know windows, processes or how stacks are resolved.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/profile/profile.h"
#include "base/metrics.h"
#include "bpf/abi/sample.h"

struct waits;

/* All are called with `context`. */
struct waits_handlers {
	/*
	 * The profile that records of window NUMBER (0 = the current one) go into, and its number.
	 * Neither changes for a returned number until waits_move() is called with it.
	 */
	struct profile *(*profile)(void *context, uint32_t number, uint32_t *ret_number);
	/* Iterates over PID's profiles on demand: starts with *ITERATOR = 0, ends with NULL. */
	struct profile *(*next_tap)(void *context, uint32_t pid, size_t *iterator);
	/* STACK of process generation PROCESS was copied: its modules are still needed. */
	void (*stack_hit)(void *context, uint32_t process, const struct profile_stack *stack);
	void *context;
};

struct waits_options {
	double share; /* of waits that is sampled, above 0, at most 1 */
	struct metrics *metrics; /* borrowed */
	struct waits_handlers handlers;
};

/* Returns 0 or -ENOMEM. */
int waits_create(const struct waits_options *options, struct waits **ret_waits);
void waits_destroy(struct waits *w);

/* A thread leaves the CPU. Its stack comes next, or once its walk is finished. */
void waits_left(struct waits *w, const struct abi_switch_out *switch_out);
/* Whether the wait that began with SWITCH_OUT can still be counted. */
bool waits_wants(struct waits *w, const struct abi_switch_out *switch_out);
/*
 * SAMPLE is made from SWITCH_OUT, without type, count and weight; its stack is in the profile that
 * records of SWITCH_OUT's window go into.
 */
void waits_resolved(struct waits *w, const struct abi_switch_out *switch_out,
	const struct profile_sample *sample);
/* The stack of SWITCH_OUT will not come. */
void waits_lost(struct waits *w, const struct abi_switch_out *switch_out);
/* The thread runs again. */
void waits_woke(struct waits *w, const struct abi_wake *wake);
void waits_thread_ended(struct waits *w, uint32_t tid);
/* WINDOW is about to be sealed. */
void waits_move(struct waits *w, uint32_t window);
