/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What store.c and store_merges.c share. */
#include "agent/server/store/entries.h"
#include "agent/server/store/store.h"
#include "base/settled_clock.h"

enum { STORE_TEMPORARY_BYTES = FILE_NAME_BYTES + 8 };

struct store {
	int fd; /* the directory, locked */
	struct store_options options; /* without its texts */
	struct entries entries;
	struct settled_clock age_clock;
	int64_t settled_tenths; /* the time of the last store_trim() */
	int removal_error; /* the first since the last store_trim(); 0 = none */
	struct store_merge merging; /* under way if it has sources */
	uint64_t stuck_ns; /* CLOCK_BOOTTIME when a merge failed; 0 = none did */
};

/* store.c */
void store_describe(const struct store *s, const struct entry *entry, struct store_file *file);
void store_temporary_path(const char *path, char *temporary, size_t size);
/* Opens the temporary file for PATH, or returns an error. */
int store_open_temporary(const struct store *s, const char *path);

/* store_merges.c */
/* When a file was merged into another: 16 seconds a step, not 0, wraps after twelve days. */
uint16_t store_stamp(uint64_t boot_ns);
uint16_t store_old_stamp(uint64_t boot_ns);
/* Long enough ago for every reader of the file to be done. */
bool store_stamp_is_old(uint16_t stamp, uint64_t boot_ns);
/* Finds out which files others stand for. */
void store_doom_merged(struct store *s, uint16_t stamp);
/* The latest generation of windows of SLOT that is merged or being merged; 0 = none. */
int store_newest_merged(const struct store *s, int64_t slot);
/* Lets failed merges be tried again, after an hour. */
void store_unstick(struct store *s, uint64_t boot_ns);
