/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A JIT's map: /tmp/perf-PID.map below the process's root, lines `START SIZE NAME` in hex, appended
 * as code is compiled; a later line overrides what it overlaps. Some JITs rewrite the whole file.
 * It is text from a foreign process, so malformed lines are skipped and counted.
 *
 * The file may be of any size; at most a million functions and 64 MiB of names are kept. Above that
 * the oldest are dropped and counted, so that an address never gets the name of older code. For the
 * same reason lookups return no name while a part of the file is unread.
 *
 * A map belongs to a program image, from exec to exec: a forked process inherits its parent's map
 * as of the fork.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_map;

int perf_map_create(struct perf_map **ret_map);
struct perf_map *perf_map_ref(struct perf_map *m);
/* Drops a reference; NULL is fine. */
void perf_map_destroy(struct perf_map *m);
/*
 * Sets when the program image began, CLOCK_REALTIME. A file last written before that belongs to
 * another program that had the pid or the process; only lines appended later count.
 */
void perf_map_set_beginning(struct perf_map *m, uint64_t began_ns);
/*
 * Creates the map of a child that PARENT's process forked just now: what PARENT holds, below the
 * lines of its own file. Returns -ENOENT if that is nothing, -E2BIG after too many generations of
 * forks.
 */
int perf_map_fork(struct perf_map *parent, struct perf_map **ret_child);
/* Creates an empty map to replace M: same program image, same parent. */
int perf_map_renew(const struct perf_map *m, struct perf_map **ret_map);
/*
 * Returns true if FD continues what was read: the same file, not shorter, with the same first bytes
 * (see perf_map_prefix.h); also if nothing was read yet.
 */
bool perf_map_continues(struct perf_map *m, int fd);
/*
 * Reads what was appended since the last call. If the file does not continue what was read, drops
 * all names and reads it from the start. An incomplete last line is left for the next call. Returns
 * -EBADMSG if it is not a regular file, -EAGAIN if further calls are needed to read the rest.
 */
int perf_map_update(struct perf_map *m, int fd);
/* Returns true if a part of the file is unread. */
bool perf_map_is_behind(const struct perf_map *m);
/* Finds the name at PC, which is valid until the next update. */
bool perf_map_lookup(
	const struct perf_map *m, uint64_t pc, const char **ret_name, uint64_t *ret_start);

/* A point in a map's history. */
struct perf_map_mark {
	uint32_t epoch, text_bytes;
};
struct perf_map_mark perf_map_mark(const struct perf_map *m);
/* Drops the lines read since MARK; addresses that they covered have no name. */
void perf_map_roll_back(struct perf_map *m, const struct perf_map_mark *mark);
/* Returns true if FD has not changed since the last update, by inode, size and mtime. */
bool perf_map_is_unchanged(const struct perf_map *m, int fd);
/* Frees the names; the next update reads the file from its start. */
void perf_map_evict(struct perf_map *m);

/* Number of pieces of functions from this map's own file. */
size_t perf_map_count(const struct perf_map *m);
/* Number of pieces dropped because of the limits. */
uint64_t perf_map_dropped(const struct perf_map *m);
size_t perf_map_bad_lines(const struct perf_map *m);
size_t perf_map_bytes(const struct perf_map *m);
