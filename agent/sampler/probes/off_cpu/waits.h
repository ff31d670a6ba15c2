/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What threads waited for. A thread that leaves the CPU sends its stack (abi_switch_out), one that
 * runs again only for how long it was away (abi_wake, bpf/probes/off_cpu.bpf.c); here the two
 * become one sample of a profile. Both have to come before a wait can be counted, in either order,
 * as the walk of a stack may be finished late:
 *
 *     left ──▶ BEGUN ──resolved──▶ RESOLVED ──woke──▶ counted, in the window in which it ends
 *                └──────woke─────▶ ENDED ──resolved──▶ counted, in the window in which it began
 *
 * The stack is resolved with the mappings of its instant, into the window of that time. When that
 * window is sealed, the stacks of threads that still wait are copied into the next one. What is
 * still waited for at the very end is in no profile, since nobody knows for how long. A wait whose
 * end was lost gives way to the thread's next one.
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
	 * Where records of window NUMBER go, and the number of that window; 0: the current one.
	 * Neither changes for a number that was returned, until waits_move() was called with it.
	 */
	struct profile *(*profile)(void *context, uint32_t number, uint32_t *ret_number);
	/* Profiles on demand of PID: starts with *ITERATOR = 0, ends with NULL. */
	struct profile *(*next_tap)(void *context, uint32_t pid, size_t *iterator);
	/* STACK, of generation PROCESS, is copied: its modules are still needed. */
	void (*stack_hit)(void *context, uint32_t process, const struct profile_stack *stack);
	void *context;
};

struct waits_options {
	double share; /* of all waits that are taken, above 0, at most 1: they stand for all */
	struct metrics *metrics; /* borrowed */
	struct waits_handlers handlers;
};

/* -ENOMEM */
int waits_create(const struct waits_options *options, struct waits **ret_waits);
void waits_destroy(struct waits *w);

/* A thread leaves the CPU. Its stack comes next, or when its walk is finished. */
void waits_left(struct waits *w, const struct abi_switch_out *switch_out);
/* False: the wait that began with SWITCH_OUT will not be counted, whatever comes. */
bool waits_wants(struct waits *w, const struct abi_switch_out *switch_out);
/*
 * SAMPLE is SWITCH_OUT, but for count and weight; its stack is in the profile that records of
 * SWITCH_OUT's window go into.
 */
void waits_resolved(struct waits *w, const struct abi_switch_out *switch_out,
	const struct profile_sample *sample);
/* Its stack will not come. */
void waits_lost(struct waits *w, const struct abi_switch_out *switch_out);
/* The thread runs again. */
void waits_woke(struct waits *w, const struct abi_wake *wake);
void waits_thread_ended(struct waits *w, uint32_t tid);
/* WINDOW is about to be sealed. */
void waits_move(struct waits *w, uint32_t window);
