/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Fakes of symbolizer/builds/builds.h and cache.h without sandboxes and files: they record requests
 * and answer as the test configures. Include in one file of a test program, in place of both.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolizer/builds/builds.h"
#include "symbolizer/builds/cache.h"

enum { FAKE_BUILDS_REQUESTS = 64 };

struct fake_request {
	struct module_id id;
	uint64_t tag;
	uint64_t inode; /* inode of the file; 0 = no file given */
	bool has_root;
	bool functions; /* are wanted */
	char path[256]; /* path of the search */
	char directories[256];
};

struct builds {
	struct fake_request requests[FAKE_BUILDS_REQUESTS];
	size_t request_count;
	int error; /* error that requests return; 0 = none */
	/* Called during each request that does not fail; NULL = requests stay unanswered. */
	void (*answer)(void *context, uint64_t tag);
	void *context;
	struct builds_setbacks setbacks;
	bool debug_is_late; /* of all answers */
};

int builds_request_debug(struct builds *b, const struct module_id *id, int fd, uint64_t tag,
	const struct debug_search *search)
{
	struct fake_request *r = &b->requests[b->request_count % FAKE_BUILDS_REQUESTS];
	struct stat st;

	*r = (struct fake_request){ .id = *id, .tag = tag, .has_root = search->root_fd >= 0 };
	b->request_count++;
	snprintf(r->path, sizeof(r->path), "%s", search->path);
	snprintf(r->directories, sizeof(r->directories), "%s", search->directories);
	if (fd >= 0) {
		r->inode = fstat(fd, &st) ? 0 : st.st_ino;
		close(fd);
	}
	if (b->error)
		return b->error;
	if (b->answer)
		b->answer(b->context, tag);
	return 0;
}

int builds_request_functions(struct builds *b, const struct module_id *id, int fd, uint64_t tag,
	const struct debug_search *search)
{
	size_t number = b->request_count % FAKE_BUILDS_REQUESTS;
	int err = builds_request_debug(b, id, fd, tag, search);

	b->requests[number].functions = true;
	return err;
}

bool builds_debug_is_late(const struct builds *b)
{
	return b->debug_is_late;
}

struct builds_setbacks builds_setbacks(const struct builds *b)
{
	return b->setbacks;
}

struct cache {
	struct index *index; /* next answer, for any module; NULL = return `error` */
	int error;
	unsigned int looks;
};

int cache_open(struct cache *cache, const struct module_id *id, struct index **ret_index)
{
	(void)id;
	cache->looks++;
	if (!cache->index)
		return cache->error;
	*ret_index = cache->index;
	cache->index = NULL;
	return 0;
}
