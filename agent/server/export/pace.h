/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How fast a target may be sent to: a bucket of bytes (before compression) that fills at a rate. A
 * server that says "too many" halves the rate; each payload it takes brings it back a little. All
 * zero and `limited` false is no limit. Times are handed in.
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
	double level; /* bytes that may go at once */
	uint64_t filled_ns;
};

void pace_init(struct pace *p, bool limited, uint64_t now_ns);
/*
 * 0: BYTES may go now, and are taken from the bucket; else how long to wait. More than a burst
 * waits for a full bucket.
 */
uint64_t pace_take(struct pace *p, uint64_t bytes, uint64_t now_ns);
void pace_too_fast(struct pace *p);
void pace_went_well(struct pace *p);
