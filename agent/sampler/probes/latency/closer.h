/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Closes events at user functions. The kernel takes a tenth of a second for each, one after the
 * other whoever closes them (it waits for grace periods with its lock on all events held), so for
 * 1500 of them two to four minutes. Nobody should have to wait for that: a process of its own does.
 * If it is killed, the kernel goes on at its exit.
 */
#include <stddef.h>

/* Sorts and closes FDS, at once if they are few or no process can be started. */
void closer_close(int *fds, size_t count);
