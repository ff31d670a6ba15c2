/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel functions that patterns name: chosen when this is created, measured until it is
 * detached. Which processes' calls count is decided by collect's filters.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/kernel_functions/kernel_choice.h"
#include "agent/sampler/probes/kernel_latency/kernel_latency.h"
#include "agent/sampler/probes/latency/latency.h"

struct kernel_functions;

struct kernel_functions_options {
	const struct function_patterns *wanted, *unwanted; /* borrowed */
	size_t max_functions;
	struct latency *latency; /* borrowed; NULL: functions are only chosen (a dry run) */
	struct kernel_latency *kernel_latency; /* likewise */
	uint32_t without; /* enum mechanism values that are switched off, for tests */
	/*
	 * One of several that share LATENCY: has its functions' numbers only until it is destroyed,
	 * and ends with kernel_functions_end().
	 */
	bool shares;
	enum abi_latency_by by; /* of its functions */
	uint32_t set; /* of processes, with latency_options.by_sets */
	const struct function_patterns *roots; /* get ABI_LATENCY_ROOT; borrowed, NULL = none */
};

/*
 * Chooses and attaches. What goes wrong with that is said by kernel_functions_problem(): only
 * -ENOMEM is returned.
 */
int kernel_functions_create(
	const struct kernel_functions_options *options, struct kernel_functions **ret_functions);
/* Detaches. NULL is allowed. */
void kernel_functions_destroy(struct kernel_functions *k);
/* Ends all measuring; what is known of the functions stays. */
void kernel_functions_detach(struct kernel_functions *k);
/* As above, without waiting for the kernel: until it is no longer busy, it must not be destroyed.
 */
void kernel_functions_end(struct kernel_functions *k);
bool kernel_functions_is_busy(struct kernel_functions *k);

/* Why none of them is measured, as the end of a sentence; NULL = nothing went wrong. */
const char *kernel_functions_problem(const struct kernel_functions *k);
/* False: the kernel's lists could not be read. */
bool kernel_functions_were_chosen(const struct kernel_functions *k);
/* Those without a `refusal` are measured, under their `number` in struct latency_cell. */
size_t kernel_functions_count(const struct kernel_functions *k);
const struct kernel_function *kernel_functions_at(const struct kernel_functions *k, size_t number);
size_t kernel_functions_excluded(const struct kernel_functions *k);
/* How many names wanted pattern NUMBER has matched. They must have been chosen. */
size_t kernel_functions_matches(const struct kernel_functions *k, size_t pattern);
/* How they are attached: "fentry/fexit"; "" = they are not. */
const char *kernel_functions_way(const struct kernel_functions *k);
/*
 * Calls that the kernel could not show to the programs so far, as far as it counts them. If it
 * shares, without those of kernel_latency_missed_by_shared().
 */
uint64_t kernel_functions_missed(const struct kernel_functions *k);
