/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by the files of the index cache: cache.c finds and adds files, cache_share.c finds copies,
 * cache_trim.c evicts.
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
