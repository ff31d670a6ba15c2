/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The sandbox as agent/server/export wants it: symbolizer/indexer/keep_debug.h behind one call that
 * waits.
 */

/*
 * As `strip` of agent/server/export/debuginfo/debuginfo.h. The calling thread has to live on: its
 * child dies with it.
 */
int keep_debug_in_sandbox(void *context, int elf_fd, int output_fd, int stop_fd);
