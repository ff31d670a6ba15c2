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
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbolizer/builds/builds.h"

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

static inline uint64_t metric(const struct fixture *f, enum metric id)
{
	return metrics_get(&f->metrics, id);
}
