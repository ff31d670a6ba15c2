/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A snapshot as text: three lines about the whole, a head, the rows. It paints over the last one
 * with a handful of sequences that every VT100 descendant knows, or is plain lines.
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
	bool ansi; /* it paints over the last screen; else plain lines */
};

/* What stands above the rows. */
struct screen_facts {
	int64_t time_s; /* since 1970 */
	uint64_t interval_ns; /* of the snapshot */
	uint64_t frequency_hz;
	uint64_t own_ns; /* CPU time of fathom in it, BPF program included */
	unsigned int cpus;
	unsigned int pending_builds;
	const struct metrics *metrics;
};

/*
 * Appends the screen. SNAPSHOT NULL: the first interval is not over. Orders the rows and corrects
 * V's first row and page.
 */
int screen_draw(struct buffer *out, struct view *v, struct snapshot *snapshot,
	const struct screen_facts *facts, const struct screen_form *form);
