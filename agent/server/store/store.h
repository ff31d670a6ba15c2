/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The local store: a directory of pprof files, bounded in bytes and age, that a person can read
 * with ls and `go tool pprof`. One file per window and process group:
 *
 *   DIR/2026-11-21/20261121T114000Z-10s-NAME.pb.gz     (UTC start, duration, the group's name)
 *
 * Times are rounded to tenths of a second (`114003.7Z-6.3s`). Written beside its name and renamed,
 * so a file is whole or not there whenever the process is killed; what an earlier run left is found
 * again at the start. Nothing is synced: a power cut may cost the last half minute, and files that
 * it left empty are removed at the next start. A full disk drops the oldest first, then the new
 * one, and counts. The oldest is the one with the earliest time; files dated in the future, from a
 * clock that was ahead, are as old as they came. Files of other names are left alone. Knows nothing
 * of profiles' content; for the loop's thread only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"

struct store;

enum { STORE_PATH_BYTES = 192 };

/* What the clocks say: wall time since 1970, and CLOCK_BOOTTIME. */
struct store_now {
	int64_t real_ns;
	uint64_t boot_ns;
};

struct store_options {
	const char *directory;
	uint64_t limit_bytes;
	uint64_t limit_age_ns; /* 0 = none */
	size_t limit_names; /* different ones at a time; 0 = 65,535 */
	struct store_now now;
	struct metrics *metrics;
};

struct store_file {
	char path[STORE_PATH_BYTES]; /* below the directory */
	const char *name; /* the group's, cleaned; lives until the store changes */
	int64_t time_ns; /* start of the window, since 1970 */
	int64_t duration_ns;
	uint64_t size_bytes;
};

/*
 * Makes the directory where it is missing. -EPERM: it is somebody else's or writable by others;
 * -EBUSY: another process has it as its store.
 */
int store_create(const struct store_options *options, struct store **ret_store);
void store_destroy(struct store *s);
/*
 * NAME is any bytes: what is not [A-Za-z0-9._-] becomes `_`, and its length is bounded. An existing
 * file is never replaced: NAME gets a number behind it. -EINVAL: no such time; -E2BIG: larger than
 * the whole store may be. An older file that could not be removed for it is no error of this one.
 */
int store_put(struct store *s, const char *name, int64_t time_ns, int64_t duration_ns,
	const void *bytes, size_t size);
/* Files whose window touches [FROM_NS, TO_NS), oldest first. Start with *ITERATOR = 0. */
bool store_next(const struct store *s, size_t *iterator, int64_t from_ns, int64_t to_ns,
	struct store_file *ret_file);
/* Opens a file by the path that store_next gave; anything else (.., /) is -ENOENT. */
int store_open(const struct store *s, const char *path, int *ret_fd);
/* On disk: each file in whole blocks of 4 KiB. This is what the limit counts. */
uint64_t store_bytes(const struct store *s);
size_t store_count(const struct store *s);
/*
 * Removes what is over the limits; store_put does so for the bytes. Ages are judged by
 * base/settled_clock.h, so that a clock that is wrong for a moment removes nothing. Returns the
 * first error of a removal since the last call, those of store_put() included; such a file is no
 * longer listed, is counted, and stays on the disk until a later start finds it.
 */
int store_trim(struct store *s, struct store_now now);
/* New limits, at a reload; store_trim() applies them. */
void store_set_limits(struct store *s, uint64_t limit_bytes, uint64_t limit_age_ns);
