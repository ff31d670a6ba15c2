/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For developers: writes everything that the sampler gets from its host into a file (format.h),
 * from which tests/replay/ makes the same profile again. While it records, the sampler's clock
 * stands still during each call of the loop, rings are read from copies, and files of /proc are
 * read whole when they are opened, so that a replay sees exactly the same.
 *
 * Not recorded, because a replay does not do it: debuginfod, uploads, the selection of processes.
 */

/*
 * Records the calling thread's host calls into PATH, which is overwritten, until the process exits.
 */
int recorder_start(const char *path);
