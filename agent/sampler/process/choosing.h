/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which processes are profiled: the selection's lists, and what others said of the containers that
 * processes are in. In this order:
 *
 *   1. A selector of the exclude list matches, about the process or its pod: no.
 *   2. The pod asks not to be profiled: no. It asks to be: yes.
 *   3. The include list is empty, or one of its selectors matches: yes, else no.
 *
 * While it is not known whether a container has a pod, or which, the answer may be open: such
 * samples may be kept until their window ends, and are shown to nobody before.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/seam/container_choices.h"
#include "base/map.h"

struct cgroup_paths;
struct process;
struct selection;

enum choosing_answer { CHOICE_WANTED, CHOICE_UNWANTED, CHOICE_OPEN };

/* When a container that nobody has told of was seen, CLOCK_MONOTONIC. */
struct choosing_seen;

struct choosing {
	const struct selection *selection; /* NULL = no lists */
	struct container_choices *choices; /* NULL: containers have no pods */
	struct choosing_seen *seen;
	size_t seen_count, seen_capacity;
	struct map seen_by_id; /* hash → index + 1 */
	uint64_t missed; /* times that an answer was open */
};

void choosing_init(struct choosing *c);
void choosing_deinit(struct choosing *c);
/* SELECTION is borrowed; NULL = no lists. */
void choosing_select(struct choosing *c, const struct selection *selection);
/* Takes CHOICES; NULL: containers have no pods. Returns whether they change an answer. */
bool choosing_take(struct choosing *c, struct container_choices *choices);
/* False: every process is wanted, whatever it is. */
bool choosing_is_needed(const struct choosing *c);
/* Whether P, as known at this moment and alive at TIME_NS, is wanted. */
enum choosing_answer choosing_of(struct choosing *c, const struct process *p, uint64_t time_ns);
/*
 * Whether the samples of P, which existed at TIME_NS, stay now that their window ends: what was
 * open must be answered, and the pod may have been excluded since. What a process is known by
 * counts at the time of the sample, so it is not asked for again.
 */
bool choosing_keeps(struct choosing *c, const struct process *p, uint64_t time_ns);
/*
 * Whether no process of a control group is wanted, whichever it is. False also if that is not
 * known.
 */
bool choosing_refuses_cgroup(const struct choosing *c, const char *container_id,
	const char *pod_uid, const struct cgroup_paths *paths);
