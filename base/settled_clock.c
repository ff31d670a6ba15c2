/* SPDX-License-Identifier: Apache-2.0 */
#include "base/settled_clock.h"

#include "base/cleanup.h"

/* Smaller differences are corrections of the clock, or time between reading the two clocks. */
static const int64_t TOLERANCE_NS = INT64_C(60000000000);

void settled_clock_init(
	struct settled_clock *c, int64_t real_ns, uint64_t boot_ns, int64_t newest_ns)
{
	*c = (struct settled_clock){ .real_ns = MIN(real_ns, newest_ns), .boot_ns = boot_ns };
}

/* If the clock jumps further during the wait, the wait starts again. */
static bool settled_clock_believes(struct settled_clock *c, int64_t ahead_by_ns, uint64_t boot_ns)
{
	if (ahead_by_ns <= TOLERANCE_NS)
		return true;
	if (!c->ahead || ahead_by_ns > c->ahead_by_ns + TOLERANCE_NS) {
		c->ahead = true;
		c->ahead_since_ns = boot_ns;
		c->ahead_by_ns = ahead_by_ns;
	}
	return boot_ns - c->ahead_since_ns >= SETTLED_CLOCK_WAIT_NS;
}

int64_t settled_clock_now(struct settled_clock *c, int64_t real_ns, uint64_t boot_ns)
{
	int64_t expected_ns = c->real_ns + (int64_t)(boot_ns - c->boot_ns);

	if (settled_clock_believes(c, real_ns - expected_ns, boot_ns)) {
		c->ahead = false;
		c->real_ns = real_ns;
	} else {
		c->real_ns = expected_ns;
	}
	c->boot_ns = boot_ns;
	return c->real_ns;
}
