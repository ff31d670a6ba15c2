/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When windows end: at multiples of their length in wall time, so that the windows of all machines
 * are aligned. Also whenever wall time jumps (the clock was set, the machine was suspended), so
 * that no window spans the jump and its times are right.
 */
#include <stdint.h>

/*
 * The time from REAL_NS (since 1970) to the next multiple of LENGTH_NS. If less than a tenth of a
 * window is left, to the multiple after it: a sliver is not worth a file.
 */
uint64_t window_clock_left_ns(uint64_t real_ns, uint64_t length_ns);

/* Opens a descriptor that becomes readable when the clock is set and after a suspend. */
int window_clock_watch(int *ret_fd);
/* Consumes the event and rearms FD. */
int window_clock_again(int fd);
