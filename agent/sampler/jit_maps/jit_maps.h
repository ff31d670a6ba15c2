/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Perf maps of the processes that were sampled in memory without a file. A map belongs to a program
 * image and not to a pid: the file is named after the pid, so the next program in that process, or
 * a later process, writes the same one. We learn of an exec only when its record arrives, up to
 * half a second late, and the file may have been rewritten by then. So a map is read while its
 * program runs, not when the window is reported; what was read after an exec whose record came
 * later is discarded; and a file last written before a program began is not that program's.
 *
 * Most processes with code in anonymous memory have no map: they are checked less and less often.
 *
 * Knows processes and perf maps, not what a map is used for. One thread.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/process/processes.h"
#include "base/metrics.h"
#include "symbolizer/perf_map/perf_map.h"

struct jit_maps;

struct jit_maps_options {
	int proc_fd; /* an open /proc; borrowed, as are the next two */
	struct processes *processes;
	struct metrics *metrics;
	size_t limit; /* process generations; more get no map, and are counted */
};

int jit_maps_create(const struct jit_maps_options *options, struct jit_maps **ret_maps);
void jit_maps_destroy(struct jit_maps *maps);

/*
 * A sample of P at SAMPLE_NS (CLOCK_MONOTONIC) has a frame in memory without a file: reads new
 * lines of P's map if that is due.
 */
void jit_maps_hit(struct jit_maps *maps, struct process *p, uint64_t sample_ns);
/* CHILD inherits the content of PARENT's map. SAMPLE_NS: time of the newest sample. */
void jit_maps_forked(
	struct jit_maps *maps, struct process *parent, struct process *child, uint64_t sample_ns);
/* P has ended: discards what another program may have written. */
void jit_maps_ended(struct jit_maps *maps, const struct process *p);
/* For a report: P's map, updated if that is due. NULL if it has none. */
const struct perf_map *jit_maps_get(struct jit_maps *maps, struct process *p);
/* P is about to be freed. */
void jit_maps_forget(struct jit_maps *maps, const struct process *p);
/* Memory is short: frees what can be read again at its next use. */
void jit_maps_shrink(struct jit_maps *maps);
