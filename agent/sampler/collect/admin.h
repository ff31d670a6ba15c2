/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Holds CAP_SYS_ADMIN only for the calls that need it. Some distributions' kernels require it for
 * each perf_event_open() if kernel.perf_event_paranoid is above 2 (Debian's default is 3), although
 * CAP_PERFMON (Linux 5.8) exists for that. Changes the calling thread's sets: capabilities(7).
 */
#include <stdbool.h>

/*
 * Removes it from the effective set if the kernel has the finer capabilities for everything else
 * (5.9 and later). Threads started later do not have it either.
 */
void admin_lay_down(void);
/* Adds it to the effective set. Returns false if it is already there or not permitted. */
bool admin_take_up(void);
/* private_mount_open(), which needs it. */
int admin_mount_open(const char *kind, const char *path);
