/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of the index cache: cache.c finds and adds files, cache_markers.c remembers
 * what went wrong, cache_share.c finds copies, cache_trim.c evicts.
 */
#include "symbolizer/builds/cache.h"

enum { CACHE_FILE_OVERHEAD_BYTES = 4096 };
#define CACHE_TEMPORARY_PREFIX ".tmp-"

struct cache {
	int dir_fd;
	uint64_t limit_bytes;
	uint64_t used_bytes; /* as last counted, plus what was added since */
	bool counted; /* used_bytes has been counted */
	unsigned int next_temporary;
};

/*
 * Returns -EBADMSG unless FD is one of our own plain files, which a restored backup or a careless
 * hand may have put there otherwise.
 */
int cache_check_trusted(int fd);
/*
 * Writes the name of ID's file with SUFFIX. Files of another format version are never found, and
 * are evicted in time.
 */
void cache_format_name(
	const struct module_id *id, const char *suffix, char name[static CACHE_NAME_BYTES]);
/* ID has been built. */
void cache_forget_interrupted(struct cache *cache, const struct module_id *id);
