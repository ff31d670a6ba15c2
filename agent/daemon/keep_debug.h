/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Adapts symbolizer/indexer/keep_debug.h to agent/server/export: one blocking call. */

/*
 * Implements `strip` of agent/server/export/debuginfo/debuginfo.h. The calling thread must outlive
 * the call: the child dies with its parent thread.
 */
int keep_debug_in_sandbox(void *context, int elf_fd, int output_fd, int stop_fd);
