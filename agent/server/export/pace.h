/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rate limit for a target: a token bucket of bytes (before compression). A server that answers "too
 * many" halves the rate; each accepted payload raises it a little. All zero (`limited` false) is no
 * limit. The caller passes the time.
 */
#include <stdbool.h>
#include <stdint.h>

/* Pyroscope's defaults: 4 MB a second, bursts of 2 MB. */
enum {
	PACE_RATE_BYTES = 4000000, /* a second */
	PACE_BURST_BYTES = 2000000,
	PACE_LOWEST_BYTES = 32000,
};

struct pace {
	bool limited;
	double rate; /* bytes a second */
	double level; /* bytes that may be sent at once */
	uint64_t filled_ns;
};

void pace_init(struct pace *p, bool limited, uint64_t now_ns);
/*
 * Returns 0 if BYTES may be sent now, and takes them from the bucket; else the ns to wait. A
 * payload larger than a burst waits for a full bucket.
 */
uint64_t pace_take(struct pace *p, uint64_t bytes, uint64_t now_ns);
void pace_too_fast(struct pace *p);
void pace_went_well(struct pace *p);
