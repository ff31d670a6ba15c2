/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A wall clock for deciding what is old enough to delete. The system's wall clock can be in the
 * future for a while (a bad NTP answer, a wrong RTC until the network is up), and files deleted
 * then are lost. So a forward jump is accepted only after the clock has stayed there for
 * SETTLED_CLOCK_WAIT_NS; until then this clock runs on from where it was. A backward step is
 * accepted at once, because it makes nothing older.
 *
 * Reads no clock itself. Wall time is in nanoseconds since 1970; boot time is CLOCK_BOOTTIME, which
 * advances while the machine is suspended, so that resuming is not a jump.
 */
#include <stdbool.h>
#include <stdint.h>

static const uint64_t SETTLED_CLOCK_WAIT_NS = UINT64_C(3600000000000);

struct settled_clock {
	int64_t real_ns; /* wall time last returned */
	uint64_t boot_ns; /* boot time of that call */
	bool ahead; /* the wall clock has jumped ahead and the jump is not accepted yet */
	uint64_t ahead_since_ns; /* if `ahead`: boot time of the jump */
	int64_t ahead_by_ns; /* if `ahead`: size of the jump */
};

/*
 * NEWEST_NS is the latest time known to be in the past, that of the newest file found at startup;
 * INT64_MAX = none. A wall clock far ahead of it counts as a jump.
 */
void settled_clock_init(
	struct settled_clock *c, int64_t real_ns, uint64_t boot_ns, int64_t newest_ns);
/* Returns the wall time to compute ages with. */
int64_t settled_clock_now(struct settled_clock *c, int64_t real_ns, uint64_t boot_ns);
