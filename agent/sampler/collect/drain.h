/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Delivers what is in the rings: merges them by time, turns each record into a call of the owner's
 * handlers, and reports gaps. Used by collect, and by the replay over recorded rings.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/collect/events.h"
#include "agent/sampler/collect/mapped_files.h"
#include "agent/sampler/collect/merge.h"

struct drain {
	struct events events;
	struct mapped_files files; /* the other halves of mapping records */
	struct merge merge;
	bool sampling; /* while it runs, the newest records may be incomplete */
	bool left_much; /* the last drain_rings(), since it was too new (ring_holds_much()) */
};

/* Uses the probes, the metrics and the handlers of OPTIONS. Returns -ENOMEM. */
int drain_init(struct drain *d, const struct collect_options *options);
void drain_deinit(struct drain *d);
/* Mapping records have build IDs; the files come in records of their own. */
void drain_join_files(struct drain *d);
void drain_set_sampling(struct drain *d, bool sampling);
/*
 * Up to which time records can be delivered: UNTIL_NS (0 = now), but not the most recent ones while
 * sampling runs. To be called before the rings are looked at.
 */
uint64_t drain_limit_ns(const struct drain *d, uint64_t until_ns);
/* Delivers the records up to LIMIT_NS. Returns their number or a negative errno. */
int64_t drain_rings(struct drain *d, struct ring *const *rings, size_t count, uint64_t limit_ns);
/* Nothing reported what happened since the last record that was delivered. */
void drain_report_gap(struct drain *d);
