/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The directory of module indexes: one file per module identity and format version. Files are
 * written beside their name and renamed into place, so a reader sees a whole file or none; two
 * agents may share a directory, also from different pid namespaces: a temporary belongs to who
 * holds its lock. Bounded in bytes (a file counts for its size and one page, so that a million
 * empty ones are not free), the least recently used go first. No file is synced: the checksum in
 * an index tells what a power failure did to it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/index/index.h"

struct cache;

/*
 * Opens (and makes, mode 0700) DIRECTORY. A directory that somebody else owns or may write to is
 * refused with -EPERM: its files would be believed. What is over the limit already goes with the
 * first commit, or when cache_trim() is called: that looks at all files.
 */
int cache_create(const char *directory, uint64_t limit_bytes, struct cache **ret_cache);
void cache_destroy(struct cache *cache);
/* -ENOENT: never built. -EBADMSG: there, but bad; it has been removed. Marks the file as used. */
int cache_open(struct cache *cache, const struct module_id *id, struct index **ret_index);
/*
 * Of a file of which there is no more than the build ID: the index of the only one that is here.
 * -ENOTUNIQ: there are several files of that build ID, and it may be any of them.
 */
int cache_open_by_build_id(
	struct cache *cache, const struct build_id *build_id, struct index **ret_index);
/*
 * Remembers that ID's build failed, so that no later run tries it again (until the format changes);
 * cache_failed() tells.
 */
void cache_set_failed(struct cache *cache, const struct module_id *id);
bool cache_failed(struct cache *cache, const struct module_id *id);
/*
 * Counts one more build of ID that was interrupted, which need not be the file's fault. Over all
 * runs, each time ID is left alone for longer before the next try, up to a day: a file that kills
 * its builder whenever it is built costs one build a day in the end. cache_pause_ns() tells how
 * long it is to be left alone from NOW_NS on (CLOCK_REALTIME), 0 = not at all. An index of ID that
 * is committed ends this.
 */
void cache_add_interrupted(struct cache *cache, const struct module_id *id);
uint64_t cache_pause_ns(struct cache *cache, const struct module_id *id, uint64_t now_ns);

/*
 * Remembers that the servers that the text WHOM names do not have what belongs to build ID ID.
 * cache_absent() tells for a day, and of the same servers only. NOW_NS is of CLOCK_REALTIME.
 */
void cache_set_absent(struct cache *cache, const struct build_id *id, const char *whom);
bool cache_absent(
	struct cache *cache, const struct build_id *id, const char *whom, uint64_t now_ns);

/* A file in the making: an unlinked-on-abandon temporary in the directory. */
struct cache_entry {
	int fd; /* read and write; owned by the entry; -1 = none */
	char temporary[64];
};
int cache_begin(struct cache *cache, struct cache_entry *ret_entry);
/* Renames into place; trims when that went over the limit. The entry is used up either way. */
int cache_commit(struct cache *cache, struct cache_entry *entry, const struct module_id *id);
void cache_abandon(struct cache *cache, struct cache_entry *entry);
/* A file of the directory that has no name and goes with its last descriptor. */
int cache_scratch(struct cache *cache, int *ret_fd);
/* Removes what exceeds the limit and temporaries of processes that are gone. */
int cache_trim(struct cache *cache);
