/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For developers: writes everything that the sampler gets from its host into a file (format.h),
 * from which tests/replay/ makes the same profile again. While it records, the sampler's clock
 * stands still during each call of the loop, rings are read from copies and files of /proc are read
 * whole when they are opened, so that a replay can do the very same.
 *
 * What a replay does not do is not recorded: debuginfod, uploads, the choice of processes by
 * settings.
 */

/* Records what the calling thread does from now on into PATH, which is made anew, until it exits.
 */
int recorder_start(const char *path);
