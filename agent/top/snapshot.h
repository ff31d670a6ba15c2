/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One interval as tables: its samples by process, by function and by fiber, so that switching
 * tables needs no new data. Owns its strings: the window and the processes may be freed.
 */
#include "agent/report/functions.h"
#include "agent/report/report.h"
#include "agent/top/rows.h"
#include "base/arena.h"

struct snapshot {
	struct rows by[ROWS_KINDS];
	struct report_summary summary;
	uint64_t weight_ns; /* CPU time of all samples */
	struct functions functions;
	struct arena texts;
};

/* Returns -ENOMEM, or -E2BIG over a limit; it fails for no other reason. */
int snapshot_create(const struct report_sources *sources, struct snapshot **ret_snapshot);
void snapshot_destroy(struct snapshot *s);
