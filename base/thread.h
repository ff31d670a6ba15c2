/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Threads beside the loop's. */
#include <pthread.h>

/*
 * Starts a thread that calls RUN(CONTEXT), with all signals blocked: the loop's thread handles
 * them. Returns 0 or a negative errno.
 */
int thread_start(pthread_t *ret_thread, void *(*run)(void *context), void *context);
