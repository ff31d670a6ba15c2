/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Closes events at user functions. The kernel takes a tenth of a second for each, one after the
 * other whoever closes them (it waits for grace periods with its lock on all events held), so for
 * 1500 of them two to four minutes. Nobody should have to wait for that: a process of its own does.
 * If it is killed, the kernel goes on at its exit.
 */
#include <stddef.h>
#include <sys/types.h>

/*
 * Sorts FDS and has them closed by a child of ours, which the caller must reap. Does not wait for
 * the kernel, which also stops at the memory of each process that is probed. Returns 0 if there was
 * nothing to do, or no process could be started: then they were closed at once.
 */
pid_t closer_begin(int *fds, size_t count);
/* Sorts and closes FDS, at once if they are few or no process can be started. */
void closer_close(int *fds, size_t count);
