/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The identity of mapped files. The kernel reports device and inode and, in side-band records since
 * Linux 5.12, the build ID (if its note is in memory); the remainder is read from the file. Each
 * file is read once, however many processes map it. Results are cached by device and inode; they
 * are valid while modification time and size are unchanged, and need no check for records with the
 * same build ID and inode generation.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/sampler/process/proc_maps.h"
#include "base/build_id_reader.h"
#include "base/module_id.h"

struct file_ids;

/* Caches up to LIMIT files; when it is full, the cache is emptied. READER is borrowed. */
int file_ids_create(size_t limit, const struct build_id_reader *reader, struct file_ids **ret_ids);
void file_ids_destroy(struct file_ids *ids);
/* From now on file_ids_get() checks a file again before it uses a cached identity. */
void file_ids_renew(struct file_ids *ids);
/*
 * Returns the identity of MAPPING's file. BUILD_ID is what the kernel reported (NULL or size 0:
 * nothing). The file is opened through TASK_FD (an open /proc/PID, or -1), else by its path in our
 * own root. If both fail, returns the cached identity of this device and inode if it may still
 * apply, else device, inode, generation and BUILD_ID alone, without a content hash.
 */
struct module_id file_ids_get(struct file_ids *ids, int task_fd, const struct proc_mapping *mapping,
	const struct build_id *build_id);
/* How often a file could not be read for lack of descriptors or memory. */
uint64_t file_ids_shortages(const struct file_ids *ids);
/* The cached identity, if it is certain without a look at the file; false if not. */
bool file_ids_known(const struct file_ids *ids, const struct proc_mapping *mapping,
	const struct build_id *build_id, struct module_id *ret_id);
