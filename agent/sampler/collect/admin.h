/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * CAP_SYS_ADMIN for the moments that need it, and no other. Some distributions' kernels want it for
 * each perf_event_open() where kernel.perf_event_paranoid is above 2 (Debian's default is 3),
 * although CAP_PERFMON (Linux 5.8) was made for that. Sets of the calling thread: capabilities(7).
 */
#include <stdbool.h>

/*
 * Takes it out of the effective set where the kernel (5.9 and later) has the finer capabilities for
 * everything else. Threads that are started later do not have it either.
 */
void admin_lay_down(void);
/* Puts it into the effective set; false where that has it already, or may not have it. */
bool admin_take_up(void);
