/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which file a mapping record is of. Where the kernel puts build IDs into its records it leaves the
 * file out, and a build ID alone proves nothing: it is what the file says of itself. So a second
 * event on each CPU writes the same records with device and inode into the same ring, just before
 * the first one's. Kept here until the other half comes.
 */
#include <stdbool.h>

#include "agent/sampler/collect/collect.h"

enum { MAPPED_FILES = 256 }; /* a power of two */

/* Under the thread; of two threads in one place the older loses its file. */
struct mapped_files {
	struct mapped_file {
		uint32_t tgid, tid;
		uint64_t start, length, file_off;
		uint64_t device, inode, generation;
	} items[MAPPED_FILES];
};

/* The half with the file. */
void mapped_files_keep(struct mapped_files *files, const struct collect_mmap *mmap);
/* The file of MMAP, the half with the build ID, is put into it if it came. */
void mapped_files_complete(struct mapped_files *files, struct collect_mmap *mmap);
