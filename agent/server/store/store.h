/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The local store: a directory of pprof files, bounded in bytes and age, that a person can read
 * with ls and `go tool pprof`. One file per window, until it is merged with others:
 *
 *   DIR/2026-11-21/20261121T114000Z-10s.pb.gz                  a window (UTC start, duration)
 *   DIR/2026-11-21/20261121T114000Z-600s.minutes-3ff.pb.gz     after an hour
 *   DIR/2026-11-21/20261121T114000Z-600s.merged.pb.gz          after a day
 *
 * Times are rounded to tenths of a second (`114003.7Z-6.3s`). Files are written under a temporary
 * name and renamed, so a killed process leaves no partial file; the next start finds what an
 * earlier run stored. Windows are not synced: a power cut may cost the last half minute, and files
 * that it left empty are removed at the next start. On a full disk the oldest files are dropped
 * first, then the new one; both are counted. The oldest file is the one with the earliest time;
 * files dated in the future, by a clock that was ahead, are ordered by arrival instead. Files with
 * other names are left alone. Older versions wrote a file for each program of a window,
 * `20261121T114000Z-10s-NAME.pb.gz`; these are listed, read and merged as well.
 *
 * What is merged: all windows that begin in a slot, which is ten minutes. The rename of the merged
 * file replaces its sources, by the names alone: a merged file stands for the windows of its slot
 * up to its own generation, and `merged` for `minutes` of the same generation. What it stands for
 * is listed no more and removed later, by the next start if need be; so neither a crash nor a file
 * that cannot be removed makes samples count twice. A window that comes later, by a clock that was
 * set back, has the next generation.
 *
 * Knows nothing of profiles' content, which its owner merges; for the loop's thread only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/store/file_name.h"
#include "base/metrics.h"

struct store;

enum { STORE_PATH_BYTES = 192 };

/* The current time: wall time since 1970, and CLOCK_BOOTTIME. */
struct store_now {
	int64_t real_ns;
	uint64_t boot_ns;
};

struct store_options {
	const char *directory;
	uint64_t limit_bytes;
	uint64_t limit_age_ns; /* 0 = none */
	size_t limit_names; /* distinct group names at a time; 0 = 65,535 */
	struct store_now now;
	struct metrics *metrics;
};

struct store_file {
	char path[STORE_PATH_BYTES]; /* relative to the directory */
	/* Of a file of one program: its name, cleaned, else ""; valid until the store changes. */
	const char *name;
	enum file_kind kind;
	/* FILE_KIND_MINUTES: which minute of the file this is, and which there are; else 0. */
	unsigned int minute, minutes;
	int64_t time_ns; /* start of the window or minute, since 1970 */
	int64_t duration_ns;
	uint64_t size_bytes; /* of a minute: its share of the file */
};

/*
 * Creates the directory if needed. -EPERM: it belongs to another user or others can write to it;
 * -EBUSY: another process uses it as its store.
 */
int store_create(const struct store_options *options, struct store **ret_store);
void store_destroy(struct store *s);
/*
 * Stores a window. NAME: NULL, or of the only program in it, as older versions did; it may be any
 * bytes: characters outside [A-Za-z0-9._-] become `_`, its length is bounded, and a hash is
 * appended if it changed. An existing file is never replaced: NAME gets a number appended.
 * -EINVAL: the time is out of range; -E2BIG: larger than the whole store may be. Failing to remove
 * an older file to make room is not an error here.
 */
int store_put(struct store *s, const char *name, int64_t time_ns, int64_t duration_ns,
	const void *bytes, size_t size);
/*
 * Iterates over the windows that overlap [FROM_NS, TO_NS), oldest first. A file of minutes is there
 * once for each of them. Start with *ITERATOR = 0.
 */
bool store_next(const struct store *s, size_t *iterator, int64_t from_ns, int64_t to_ns,
	struct store_file *ret_file);
/* Opens a file by a path from store_next(); -ENOENT for anything else (.., /). */
int store_open(const struct store *s, const char *path, int *ret_fd);
/* Opens the directory anew, to open files below it by their paths. */
int store_open_root(const struct store *s, int *ret_fd);
/* Bytes on disk, each file in whole blocks of 4 KiB. The limit applies to this. */
uint64_t store_bytes(const struct store *s);
size_t store_count(const struct store *s);
/*
 * Removes files over the limits; store_put() enforces only the limit in bytes. base/settled_clock.h
 * judges ages, so that a clock that is briefly wrong removes nothing. Returns the first removal
 * error since the last call, including those of store_put(). A file that cannot be removed is no
 * longer listed, is counted, and stays on disk until a later start finds it.
 */
int store_trim(struct store *s, struct store_now now);
/* Sets new limits, which store_trim() applies. */
void store_set_limits(struct store *s, uint64_t limit_bytes, uint64_t limit_age_ns);

/* Files that are to become one. */
struct store_merge {
	struct file_name into;
	enum file_kind from; /* FILE_KIND_MINUTES, or FILE_KIND_WINDOW: those of one program, too */
	size_t sources;
};

/* When files are merged, counted from the end of their slot. */
static const int64_t STORE_MINUTES_AFTER_NS = INT64_C(3600000000000);
static const int64_t STORE_MERGED_AFTER_NS = INT64_C(86400000000000);

/*
 * Finds the oldest files that are old enough to be merged, at the time of the last store_trim().
 * False if there are none, or if a merge is under way.
 */
bool store_merge_find(const struct store *s, struct store_merge *ret_merge);
/*
 * Iterates over the files that M merges. In a file that becomes minutes, `minute` is the minute
 * that the window belongs to.
 */
bool store_merge_next(const struct store *s, const struct store_merge *m, size_t *iterator,
	struct store_file *ret_file);
/* Creates the file; only one merge at a time. The caller writes it, syncs it and closes RET_FD. */
int store_merge_begin(struct store *s, const struct store_merge *m, int *ret_fd);
/*
 * ERR: 0 if the file is written, and now takes the place of its sources; else they stay, and the
 * merge is tried again an hour later. Returns ERR, or why the file could not take their place.
 */
int store_merge_end(struct store *s, int err, struct store_now now);
