/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Adapts symbolizer/indexer/keep_debug.h to agent/server/export: one blocking call. A file that
 * does not answer holds it up for a few seconds only: its child is killed, and left behind if that
 * waits for the file as well.
 */
#include <pthread.h>

#include "symbolizer/sandbox/sandbox.h"

enum { KEEP_DEBUG_LEFT = 8 };

struct keep_debug {
	pthread_mutex_t lock;
	struct sandbox left[KEEP_DEBUG_LEFT]; /* killed, but not gone yet */
	unsigned int left_count;
};

void keep_debug_init(struct keep_debug *k);
/* Children that are still left end with their files' waits. */
void keep_debug_deinit(struct keep_debug *k);
/*
 * Implements `strip` of agent/server/export/debuginfo/debuginfo.h; CONTEXT is a struct keep_debug.
 * The calling thread must outlive the call: the child dies with its parent thread.
 */
int keep_debug_in_sandbox(void *context, int elf_fd, int output_fd, int stop_fd);
