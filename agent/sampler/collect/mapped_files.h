/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the file of a mapping record. The kernel's mapping records have either a build ID or device
 * and inode, and a build ID alone proves nothing, since the file itself supplies it. So a second
 * event on each CPU writes each record with device and inode into the same ring, just before the
 * one with the build ID. This table keeps that half until the other one comes.
 */
#include <stdbool.h>

#include "agent/sampler/collect/collect.h"

enum { MAPPED_FILES = 256 }; /* a power of two */

/* Hashed by thread; if two threads share an item, the older one loses its file. */
struct mapped_files {
	struct mapped_file {
		uint32_t tgid, tid;
		uint64_t start, length, file_off;
		uint64_t device, inode, generation;
	} items[MAPPED_FILES];
};

/* Keeps MMAP, the half with the file. */
void mapped_files_keep(struct mapped_files *files, const struct collect_mmap *mmap);
/* Sets the file of MMAP, the half with the build ID, if its other half came. */
void mapped_files_complete(struct mapped_files *files, struct collect_mmap *mmap);
