/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The identity of mapped files. The kernel gives device and inode, in side-band records from Linux
 * 5.12 on the build ID too (where its note is in memory); the rest takes a look at the file. Each
 * file is read once, however many processes map it: the answers are kept by device and inode and
 * hold while modification time and size stay the same, and for records that tell the same build ID
 * and generation of the inode without a look.
 */
#include <stdbool.h>
#include <stddef.h>

#include "agent/sampler/process/proc_maps.h"
#include "base/module_id.h"

struct file_ids;

/* Remembers LIMIT files; then it starts afresh. */
int file_ids_create(size_t limit, struct file_ids **ret_ids);
void file_ids_destroy(struct file_ids *ids);
/* From now on a file is looked at again before what is known of it is believed. */
void file_ids_renew(struct file_ids *ids);
/*
 * The identity of MAPPING's file, which the kernel says has BUILD_ID (NULL or none: it does not
 * say). TASK_FD (an open /proc/PID, or -1) is what to reach it through, its path in our own root is
 * tried too; when both fail, it is the last that was known for this device and inode, else these,
 * the generation and BUILD_ID alone, without a content hash.
 */
struct module_id file_ids_get(struct file_ids *ids, int task_fd, const struct proc_mapping *mapping,
	const struct build_id *build_id);
/* How often a file could not be looked at because we had no descriptors or memory. */
uint64_t file_ids_shortages(const struct file_ids *ids);
/*
 * Which file MAPPING is of and, where they are known, the time of change and the size that it had
 * when ID was read from it.
 */
struct file_id file_ids_state(
	const struct file_ids *ids, const struct proc_mapping *mapping, const struct module_id *id);
/* What file_ids_get() gives without a look, if that is certain. */
bool file_ids_known(const struct file_ids *ids, const struct proc_mapping *mapping,
	const struct build_id *build_id, struct module_id *ret_id);
