/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the process of a thread in /proc. */
#include <stdint.h>

/*
 * Returns the process id of thread ID, 0 if there is no such thread. /proc has a directory for each
 * thread, although it does not list it.
 */
uint32_t thread_group_of(uint32_t id);
