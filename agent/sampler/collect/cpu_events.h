/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The perf events of each CPU that is online: its output event with the ring, the event that tells
 * of mapped files beside it, and, on the CPUs that are sampled, the sampling event. CPUs may come
 * and go. Does not know what is in the rings.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/collect/cpus.h"
#include "agent/sampler/collect/ring.h"

struct cpu_events;
struct probe_set;

/*
 * Opens the events of all CPUs, disabled, and connects them with PROBES, which are borrowed. Errors
 * and *RET_STEP are those of collect_create().
 */
int cpu_events_create(const struct collect_options *options, struct probe_set *probes,
	struct cpu_events **ret_events, const char **ret_step);
void cpu_events_destroy(struct cpu_events *e);
/* Whether mapping records have build IDs, and the files come in records of their own. */
bool cpu_events_have_build_ids(const struct cpu_events *e);
/* An epoll descriptor of all output events. */
int cpu_events_fd(const struct cpu_events *e);

/* Starts (ON) or stops sampling, also of CPUs that come later. */
int cpu_events_start(struct cpu_events *e, bool on);
/* Pauses or resumes sampling that was started. */
int cpu_events_pause(struct cpu_events *e, bool pause);
/* Changes the rate of CPUs that are sampled and of those that come later. */
int cpu_events_set_frequency(struct cpu_events *e, uint64_t hz);
size_t cpu_events_sampled(const struct cpu_events *e); /* number of CPUs */

/*
 * All rings, those that BPF writes without perf included. The list, of *RET_COUNT, may be changed
 * and is valid until the next call of any function.
 */
struct ring **cpu_events_rings(struct cpu_events *e, size_t *ret_count);
/* Closes events of CPUs that went offline and whose rings were read to the end. */
void cpu_events_forget_gone(struct cpu_events *e);
/*
 * Opens the events of CPUs that came online, and disconnects those of CPUs that went offline.
 * *RET_OPENED is set on failure, too.
 */
int cpu_events_check(struct cpu_events *e, bool *ret_opened);
