/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files that need no upload for now: keys of a file and a server, each with an expiry time. Kept in
 * memory and, on request, in a file of lines `KEY UNTIL` that the next process reads. Never synced:
 * losing the file costs one question to the server per file.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct debuginfo_known {
	struct map until; /* seconds since 1970 */
	char *path; /* of the file */
	unsigned int lines; /* appended by this process */
};

/* An unreadable file counts as empty. -ENOMEM. */
int debuginfo_known_init(struct debuginfo_known *k, const char *directory, int64_t now_s);
void debuginfo_known_deinit(struct debuginfo_known *k);
bool debuginfo_known_has(const struct debuginfo_known *k, uint64_t key, int64_t now_s);
/* Removes expired keys when full; -E2BIG if that does not help. */
int debuginfo_known_add(struct debuginfo_known *k, uint64_t key, int64_t until_s, int64_t now_s);
/* Appends to the file; blocks on the disk. */
int debuginfo_known_write(struct debuginfo_known *k, uint64_t key, int64_t until_s);
