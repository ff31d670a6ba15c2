/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The build ID that the kernel reads from a mapped file (PROCMAP_QUERY, Linux 6.11). */
#include <stdint.h>

#include "base/module_id.h"

/*
 * Asks for the file that TASK_FD (an open /proc/PID) maps from START to END. Returns -ENOTTY if
 * this kernel does not know the question, -ESTALE if there is no such mapping any more, and -ENOENT
 * if the kernel finds no build ID, which the file may have all the same.
 */
int mapped_build_id_read(int task_fd, uint64_t start, uint64_t end, struct build_id *ret_id);
