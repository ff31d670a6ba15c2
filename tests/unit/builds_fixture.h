/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A build queue with a directory of its own; records the descriptors that it watches and its
 * answers.
 */
#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/builds/builds.h"
#include "symbolizer/debuginfod/debuginfod.h"

enum { FUNCTION = 0x1000, MAX_WATCHED = 16, DONE_ROOM = 64, PATIENCE_MS = 60000, LIMIT = 1 << 30 };

struct done_call {
	uint64_t tag;
	struct index *index;
};

struct fixture {
	char directory[64];
	struct cache *cache;
	struct metrics metrics;
	struct debuginfod *debuginfod; /* NULL = none */
	struct builds *builds;
	struct pollfd watched[MAX_WATCHED];
	nfds_t watched_count;
	struct done_call done[DONE_ROOM];
	size_t done_count;
	uint64_t ask_again; /* tag whose `done` requests module 99; 0 = none */
};

static inline struct module_id make_id(uint8_t number)
{
	struct module_id id = { .build_id.size = 20 };

	memset(id.build_id.bytes, number, 20);
	return id;
}

static inline void on_watch(void *context, int fd, bool on)
{
	struct fixture *f = context;
	nfds_t i = 0;

	while (i < f->watched_count && f->watched[i].fd != fd)
		i++;
	assert_true(on == (i == f->watched_count));
	if (on)
		f->watched[f->watched_count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	else
		f->watched[i] = f->watched[--f->watched_count];
}

static inline void empty_directory(const char *path)
{
	autoclosedir DIR *d = opendir(path);
	const struct dirent *entry;

	while ((entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
}

static inline void run_loop_once(struct fixture *f)
{
	struct pollfd ready[MAX_WATCHED];
	nfds_t count = f->watched_count;

	memcpy(ready, f->watched, sizeof(ready));
	assert_true(poll(ready, count, PATIENCE_MS) > 0);
	for (nfds_t i = 0; i < count; i++) {
		if (ready[i].revents)
			builds_ready(f->builds, ready[i].fd);
	}
}

/* Of a queue that calls DONE with the fixture, with room for two modules. */
static inline struct builds_options fixture_options(
	struct fixture *f, void (*done)(void *context, uint64_t tag, struct index *index))
{
	return (struct builds_options){
		.cache = f->cache,
		.metrics = &f->metrics,
		.limits = { .memory_bytes = 256 << 20, .cpu_seconds = 10, .output_bytes = 1 << 20 },
		.max_children = 2,
		.max_waiting = 2,
		.watch = on_watch,
		.done = done,
		.context = f,
	};
}

/* Without a queue. Returns NULL if there can be no directory or cache. */
static inline struct fixture *fixture_create(void)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->directory, sizeof(f->directory), "/tmp/fathom-builds-XXXXXX");
	if (!mkdtemp(f->directory) || cache_create(f->directory, LIMIT, &f->cache))
		return NULL;
	return f;
}

/* Destroying the queue kills its builders, but does not wait until they have ended. */
static inline void wait_for_children(void)
{
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* Returns -1 if the queue has left a descriptor watched. */
static inline int fixture_destroy(struct fixture *f)
{
	bool clean;

	builds_destroy(f->builds);
	/* The next test is to have no child but its own. */
	wait_for_children();
	clean = f->watched_count == 0;
	debuginfod_destroy(f->debuginfod);
	for (size_t i = 0; i < f->done_count; i++)
		index_destroy(f->done[i].index);
	cache_destroy(f->cache);
	empty_directory(f->directory);
	clean = rmdir(f->directory) == 0 && clean;
	free(f);
	return clean ? 0 : -1;
}

static inline uint64_t metric(const struct fixture *f, enum metric id)
{
	return metrics_get(&f->metrics, id);
}
