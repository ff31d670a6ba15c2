/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/export/pace.h"

#include "base/cleanup.h"

static const double RISE = 1.05;

void pace_init(struct pace *p, bool limited, uint64_t now_ns)
{
	*p = (struct pace){
		.limited = limited,
		.rate = PACE_RATE_BYTES,
		.level = PACE_BURST_BYTES,
		.filled_ns = now_ns,
	};
}

static void pace_fill(struct pace *p, uint64_t now_ns)
{
	double seconds = (double)(now_ns - p->filled_ns) / 1e9;

	p->level = MIN(p->level + seconds * p->rate, (double)PACE_BURST_BYTES);
	p->filled_ns = now_ns;
}

uint64_t pace_take(struct pace *p, uint64_t bytes, uint64_t now_ns)
{
	double wanted = MIN((double)bytes, (double)PACE_BURST_BYTES);

	if (!p->limited)
		return 0;
	pace_fill(p, now_ns);
	if (p->level < wanted)
		return (uint64_t)((wanted - p->level) / p->rate * 1e9) + 1;
	p->level -= (double)bytes;
	return 0;
}

void pace_too_fast(struct pace *p)
{
	p->rate = MAX(p->rate / 2, (double)PACE_LOWEST_BYTES);
	/* The server counted more bytes than we did. */
	p->level = MIN(p->level, 0.0);
}

void pace_went_well(struct pace *p)
{
	p->rate = MIN(p->rate * RISE, (double)PACE_RATE_BYTES);
}
