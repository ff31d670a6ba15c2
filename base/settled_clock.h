/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The wall clock for deciding what is too old to be kept. A wall clock can stand in the future for
 * a moment (a bad NTP answer, a machine whose RTC is wrong until the network is up), and what is
 * deleted in that moment does not come back. So a jump ahead is believed only after the clock has
 * stayed there for SETTLED_CLOCK_WAIT_NS; until then this clock goes on from where it was. A step
 * back is believed at once, as it makes nothing older.
 *
 * Reads no clock itself. Wall time is in nanoseconds since 1970; boot time is CLOCK_BOOTTIME, which
 * goes on while the machine is suspended, so that resuming is no jump.
 */
#include <stdbool.h>
#include <stdint.h>

static const uint64_t SETTLED_CLOCK_WAIT_NS = UINT64_C(3600000000000);

struct settled_clock {
	int64_t real_ns; /* what it said last */
	uint64_t boot_ns; /* when that was */
	bool ahead; /* the wall clock has jumped ahead and is not believed yet */
	uint64_t ahead_since_ns; /* with AHEAD: boot time of the jump, and how far it went */
	int64_t ahead_by_ns;
};

/*
 * NEWEST_NS is the newest time that is known to have been: that of the newest file found at the
 * start; INT64_MAX for none. A clock that is far ahead of it has to settle first.
 */
void settled_clock_init(
	struct settled_clock *c, int64_t real_ns, uint64_t boot_ns, int64_t newest_ns);
/* The wall time to judge ages by. */
int64_t settled_clock_now(struct settled_clock *c, int64_t real_ns, uint64_t boot_ns);
