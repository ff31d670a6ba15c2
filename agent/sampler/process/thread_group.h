/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which process a thread is of, asked of /proc. */
#include <stdint.h>

/* A thread has a folder of its own in /proc, which no listing shows. 0 = there is none of that ID.
 */
uint32_t thread_group_of(uint32_t id);
