/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Does the same work for many items, in several threads that exist only meanwhile. For system calls
 * that mostly wait. The work must not touch what another item or the caller's thread uses.
 */
#include <stddef.h>

/* Calls WORK for the items 0 to COUNT - 1, in no order, and returns when all are done. */
void workers_run(size_t count, void (*work)(void *context, size_t item), void *context);
