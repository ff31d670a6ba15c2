/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Draws a snapshot as text: three or four lines of totals, column names, the rows. Repaints in
 * place with a few sequences that every VT100 descendant knows, or writes plain lines.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/top/snapshot.h"
#include "agent/top/view.h"
#include "base/buffer.h"
#include "base/metrics.h"

struct screen_form {
	size_t columns; /* 0 = unlimited */
	size_t lines; /* 0 = unlimited */
	bool ansi; /* repaint over the last screen; else plain lines */
};

/* Values for the lines above the rows. */
struct screen_facts {
	int64_t time_s; /* seconds since 1970 */
	uint64_t interval_ns; /* of the snapshot */
	uint64_t frequency_hz;
	uint64_t own_ns; /* CPU time of fathom in the interval, BPF included */
	unsigned int cpus;
	unsigned int pending_builds;
	const struct metrics *metrics;
	const char *note; /* a line of its own below the totals; NULL = none */
};

/* Samples lost so far, for whatever reason. */
uint64_t screen_lost_samples(const struct metrics *metrics);
/*
 * Appends the screen to OUT. SNAPSHOT is NULL during the first interval. Sorts SNAPSHOT's rows and
 * updates V's first row and page size.
 */
int screen_draw(struct buffer *out, struct view *v, struct snapshot *snapshot,
	const struct screen_facts *facts, const struct screen_form *form);
