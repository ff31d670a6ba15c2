/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The directory of module indexes: one name per module identity and format version, and names for
 * what else is kept of a module (kept_arguments.h). Files are
 * written under a temporary name and renamed into place, so a reader sees a complete file or none.
 *
 * An index answers only for the inode that it was made from: whatever can be compared before a file
 * is indexed can be forged. Copies of a file still share one index file, under a name (hard link)
 * for each: cache_share() compares what came out of their builds. So the proof that a copy is equal
 * costs one build for each new inode, and one comparison.
 *
 * Two agents may share a directory, even from different pid namespaces: a temporary file belongs to
 * the holder of its lock. Bounded in bytes, least recently used evicted first; a file counts for
 * its size, and each of its names for a page, so that a million empty ones are not free. No file is
 * synced: the checksum in an index detects damage by a power failure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/index/index.h"

struct cache;

enum { CACHE_SUFFIX_BYTES = 32, CACHE_NAME_BYTES = MODULE_ID_TEXT_BYTES + 8 + CACHE_SUFFIX_BYTES };

/*
 * Opens DIRECTORY, or creates it with mode 0700. Returns -EPERM if somebody else owns it or may
 * write to it, because its files are trusted. A directory over the limit is trimmed by the first
 * commit or by cache_trim(), not here: trimming reads all entries.
 */
int cache_create(const char *directory, uint64_t limit_bytes, struct cache **ret_cache);
void cache_destroy(struct cache *cache);
/*
 * Marks the file as used. Returns -ENOENT if it was never built; -EBADMSG if it was damaged and has
 * been removed.
 */
int cache_open(struct cache *cache, const struct module_id *id, struct index **ret_index);
/*
 * Opens the only index with BUILD_ID, for a file known by its build ID only. Returns -ENOTUNIQ if
 * there are several, of files that are not equal or were indexed with other debug files.
 */
int cache_open_by_build_id(
	struct cache *cache, const struct build_id *build_id, struct index **ret_index);
/*
 * Remembers that ID's build failed, so that no later run retries it until the format changes.
 * cache_failed() returns true for such an ID.
 */
void cache_set_failed(struct cache *cache, const struct module_id *id);
bool cache_failed(struct cache *cache, const struct module_id *id);
/*
 * Counts one more interrupted build of ID, which need not be the file's fault. Across restarts,
 * each one lengthens the pause before the next attempt, up to a day: a file that always kills its
 * builder ends up costing one build a day. cache_pause_ns() returns the pause left at NOW_NS
 * (CLOCK_REALTIME), 0 = none. Committing an index of ID resets this.
 */
void cache_add_interrupted(struct cache *cache, const struct module_id *id);
uint64_t cache_pause_ns(struct cache *cache, const struct module_id *id, uint64_t now_ns);

/*
 * Remembers that the servers named by the text WHOM have nothing for build ID ID. cache_absent()
 * returns true for a day, and for the same servers only. NOW_NS: CLOCK_REALTIME.
 */
void cache_set_absent(struct cache *cache, const struct build_id *id, const char *whom);
bool cache_absent(
	struct cache *cache, const struct build_id *id, const char *whom, uint64_t now_ns);

/* An unfinished file: a temporary in the directory, unlinked by cache_abandon(). */
struct cache_entry {
	int fd; /* owned by the entry; -1 = none */
	char temporary[64]; /* "" = FD is a shared file */
	char shared[CACHE_NAME_BYTES]; /* a name of that file */
};
/* Its descriptor is for reading and writing. */
int cache_begin(struct cache *cache, struct cache_entry *ret_entry);
/*
 * If the index that was written to ENTRY has the same bytes as a cached one whose file has ID's
 * build ID and content hash, ENTRY becomes that older file. Errors only cost disk space.
 */
void cache_share(struct cache *cache, struct cache_entry *entry, const struct module_id *id);
/*
 * Renames or links into place and trims the directory if it is over the limit. Consumes the entry
 * even on error. An index of a file with `claimed` numbers is not kept: after a restart another
 * file could claim them.
 */
int cache_commit(struct cache *cache, struct cache_entry *entry, const struct module_id *id);
void cache_abandon(struct cache *cache, struct cache_entry *entry);
/*
 * Files of other kinds, beside the index of ID: SUFFIX (a dot, then the kind) tells them apart, and
 * has less than CACHE_SUFFIX_BYTES. What is in them is up to their owner, who has to check it.
 * cache_open_beside() opens one for reading and marks it as used. Returns -ENOENT if there is none;
 * -EBADMSG if somebody else could have written it, in which case it has been removed.
 * cache_commit_beside() is as cache_commit().
 */
int cache_open_beside(
	struct cache *cache, const struct module_id *id, const char *suffix, int *ret_fd);
int cache_commit_beside(struct cache *cache, struct cache_entry *entry, const struct module_id *id,
	const char *suffix);
void cache_remove_beside(struct cache *cache, const struct module_id *id, const char *suffix);
/* Opens an unnamed file in the directory, freed with its last descriptor. */
int cache_scratch(struct cache *cache, int *ret_fd);
/* Evicts files over the limit and removes temporaries of processes that are gone. */
int cache_trim(struct cache *cache);
