/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The control groups (version 2) of which no process is wanted: BPF leaves them out before it walks
 * a stack. A group is considered when a sample of it was not wanted. Its path is looked up by its
 * id, not by its process, which may have moved.
 *
 * Where that path does not tell all about the group's processes (version 1 beside it, and the group
 * is no container's), the decision stays with choosing.h, sample by sample.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/process/choosing.h"
#include "base/map.h"

struct process;

struct left_out_cgroups_options {
	const struct choosing *choosing; /* borrowed */
	int (*path_of)(uint64_t id, char *path, size_t size); /* cgroup_path() */
	/* Sets whether BPF leaves out group ID. Returns a negative errno. */
	int (*leave_out)(void *context, uint64_t id, bool out);
	void *context;
};

struct left_out_cgroups {
	struct left_out_cgroups_options options;
	struct map considered; /* id → 1 = it is left out, 0 = it cannot be */
	uint64_t *swept; /* those left to look at in this round */
	size_t swept_count, swept_capacity;
};

void left_out_cgroups_init(
	struct left_out_cgroups *l, const struct left_out_cgroups_options *options);
void left_out_cgroups_deinit(struct left_out_cgroups *l);
/* A sample of P in group ID, 0 = not known, was not wanted. */
void left_out_cgroups_consider(struct left_out_cgroups *l, const struct process *p, uint64_t id);
/* The choice has changed: none is left out. */
void left_out_cgroups_clear(struct left_out_cgroups *l);
/* Forgets groups that are gone. Call it once a second; each call looks at some. */
void left_out_cgroups_sweep(struct left_out_cgroups *l);
