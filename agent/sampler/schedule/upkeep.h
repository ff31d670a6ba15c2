/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is done once a second: the owner's jobs, in the order of their table. Some are done only
 * while sampling runs. One thread, the loop's.
 */
#include <stdbool.h>
#include <stddef.h>

struct loop;

enum upkeep_when {
	UPKEEP_ALWAYS,
	UPKEEP_SAMPLING, /* while sampling runs */
	UPKEEP_ONCE, /* the first time that sampling runs */
};

struct upkeep_job {
	void (*run)(void *context);
	enum upkeep_when when;
	const char *step; /* its name (loop_step()) */
};

struct upkeep_options {
	struct loop *loop; /* borrowed, as is the table */
	const struct upkeep_job *jobs;
	size_t count;
	void *context; /* of the jobs */
};

struct upkeep {
	struct upkeep_options options;
	int timer; /* -1 = none */
	bool sampling;
	bool once_done;
};

/* Returns a negative errno. */
int upkeep_init(struct upkeep *u, const struct upkeep_options *options);
/* Does nothing to a zeroed one. */
void upkeep_deinit(struct upkeep *u);
void upkeep_set_sampling(struct upkeep *u, bool sampling);
