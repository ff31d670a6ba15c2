/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reports losses of samples and kernel records in the log: the first at once, later ones at most
 * once a minute, with the sum since the last line. Finds them in the counters, whoever counted
 * them.
 */
#include <stdint.h>

#include "agent/sampler/seam/trouble.h"
#include "base/log.h"
#include "base/metrics.h"

struct losses {
	uint64_t noticed[METRIC_COUNT]; /* by the last look; only of counters of losses */
	uint64_t logged[METRIC_COUNT]; /* by the last log line */
	struct trouble_loss last;
	struct log_rate log;
};

/* Call about once a second. L is zeroed at first. */
void losses_check(struct losses *l, const struct metrics *metrics);
