/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What needs no upload for now: keys of a file and a server, each until some time. Kept in memory
 * and, where asked, in a file of lines `KEY UNTIL`, which a later process reads. Losing it costs
 * one question to the server for each file, so that it is never synced.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"

struct debuginfo_known {
	struct map until; /* seconds since 1970 */
	char *path; /* of the file */
	unsigned int lines; /* appended by this process */
};

/* A file that cannot be read is an empty one. -ENOMEM. */
int debuginfo_known_init(struct debuginfo_known *k, const char *directory, int64_t now_s);
void debuginfo_known_deinit(struct debuginfo_known *k);
bool debuginfo_known_has(const struct debuginfo_known *k, uint64_t key, int64_t now_s);
/* What is over goes where it gets full; -E2BIG when that does not help. */
int debuginfo_known_add(struct debuginfo_known *k, uint64_t key, int64_t until_s, int64_t now_s);
/* Into the file, too; takes the time of the disk. */
int debuginfo_known_write(struct debuginfo_known *k, uint64_t key, int64_t until_s);
