/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How long the turns of a loop took: a histogram, the longest and the last of the long ones. Long
 * turns are logged, the first at once, later ones at most once a minute.
 */
#include <stdint.h>

#include "agent/loop/loop.h"
#include "base/log.h"

enum { TURN_STATS_BOUNDS = 13 };

/* Upper bounds of the buckets, in seconds, ascending. */
extern const double turn_stats_bounds[TURN_STATS_BOUNDS];

struct observed_turn {
	uint64_t real_ns; /* when it ended, CLOCK_REALTIME; 0 = there was none */
	struct loop_turn turn;
};

struct turn_stats {
	uint64_t buckets[TURN_STATS_BOUNDS + 1]; /* turns above all bounds are in the last one */
	uint64_t sum_ns;
	struct observed_turn last_long, longest; /* of the long ones; of all */
	uint64_t unlogged; /* long turns since the last log line */
	struct log_rate log;
};

/* Watches LOOP from now on, for as long as both exist. S must be zeroed. */
void turn_stats_watch(struct turn_stats *s, struct loop *loop);
/* Adds one turn. */
void turn_stats_add(struct turn_stats *s, const struct loop_turn *turn);
