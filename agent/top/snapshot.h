/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One interval as tables: the same samples by process, by function and by goroutine, so that a key
 * shows another table at once. Owns all its texts: the window and the processes may go.
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

/* Memory and limits only: -ENOMEM, -E2BIG. */
int snapshot_create(const struct report_sources *sources, struct snapshot **ret_snapshot);
void snapshot_destroy(struct snapshot *s);
/* A function of Go's runtime, which is not what a goroutine is called by. */
bool snapshot_is_runtime(const char *function);
