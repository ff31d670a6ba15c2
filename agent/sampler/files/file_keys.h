/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What may hang by itself (hangs.h), as a key: a device, the memory of a process, a folder as a
 * container sees it. Finding it asks no file system but /proc.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/foreign.h"

/* Keys of open files, by descriptor number; zero it at first. */
struct file_keys {
	uint64_t *items;
	size_t count;
};

/* All are at least 1. NAME below the directory of /proc DIR_FD; -1: NAME alone. */
uint64_t file_key_of_entry(int dir_fd, const char *name);
/* The memory of the process of TASK_FD, an open /proc/PID. */
uint64_t file_key_of_memory(int task_fd);
uint64_t file_key_of_path(const struct foreign_path *path);
/* The key that FD was opened with; 1 if that is not known. */
uint64_t file_keys_get(const struct file_keys *keys, int fd);
/* Out of memory only means that the descriptor shares its key with others. */
void file_keys_set(struct file_keys *keys, int fd, uint64_t key);
