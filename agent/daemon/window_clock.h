/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * When windows end: at multiples of their length in wall time, so that those of all machines cover
 * the same minutes. And at once when wall time jumps, because somebody set the clock or the machine
 * was suspended: each window then lies on one side of the jump and its times are true.
 */
#include <stdint.h>

/*
 * Until the next multiple of LENGTH_NS, from REAL_NS since 1970. A tenth of a window or less goes
 * to the next one: a sliver is not worth a file.
 */
uint64_t window_clock_left_ns(uint64_t real_ns, uint64_t length_ns);

/* A descriptor that becomes readable when the clock is set, and after a suspend. */
int window_clock_watch(int *ret_fd);
/* Takes the event from FD and watches on. */
int window_clock_again(int fd);
