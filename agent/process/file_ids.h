/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The identity of mapped files for which the kernel gave device and inode only: from /proc always,
 * from side-band records before Linux 5.12 and where a note was not in memory. Each file's build ID
 * is read once, however many processes map it: the answers are kept by device and inode and hold
 * while modification time and size stay the same.
 */
#include <stddef.h>

#include "agent/process/proc_maps.h"
#include "base/module_id.h"

struct file_ids;

/* Remembers LIMIT files; then it starts afresh. */
int file_ids_create(size_t limit, struct file_ids **ret_ids);
void file_ids_destroy(struct file_ids *ids);
/* From now on a file is looked at again before what is known of it is believed. */
void file_ids_renew(struct file_ids *ids);
/*
 * The identity of MAPPING's file. TASK_FD (an open /proc/PID, or -1) is what to reach it through;
 * when that fails, it is the last that was known for this device and inode, else these two alone.
 */
struct module_id file_ids_get(
	struct file_ids *ids, int task_fd, const struct proc_mapping *mapping);
