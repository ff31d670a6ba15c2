/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The map that a JIT writes: /tmp/perf-PID.map below the process's root, lines `START SIZE NAME` in
 * hex, appended as code is compiled; a later line wins over what it overlaps. Some JITs write the
 * whole file anew instead. Text of a foreign process, so lines that make no sense are skipped and
 * counted.
 *
 * The file may be of any size, what is kept of it is not: a million functions and 64 MiB of names.
 * Over that the oldest are dropped, and counted, so that an address never has the name of what was
 * there before. For the same reason no name at all is given while a part of the file is not read.
 *
 * A map belongs to a program image, from exec to exec: a process that is forked goes on with what
 * its parent had at that time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_map;

int perf_map_create(struct perf_map **ret_map);
struct perf_map *perf_map_ref(struct perf_map *m);
/* Gives a reference back. */
void perf_map_destroy(struct perf_map *m);
/*
 * When the program image began, CLOCK_REALTIME: a file that was last written before is another's,
 * who had the pid or the process. Only what is appended to it later counts.
 */
void perf_map_set_beginning(struct perf_map *m, uint64_t began_ns);
/*
 * A map for a child that was forked from PARENT's process at this moment: what PARENT holds now,
 * below the lines of its own file. -ENOENT: that is nothing.
 */
int perf_map_fork(struct perf_map *parent, struct perf_map **ret_child);
/* An empty map in the place of M: of the same program image, with the same parent. */
int perf_map_renew(const struct perf_map *m, struct perf_map **ret_map);
/*
 * Whether FD goes on with what was read: the same file, not shorter, and it still begins with the
 * same bytes (see perf_map_prefix.h). True while nothing was read.
 */
bool perf_map_continues(struct perf_map *m, int fd);
/*
 * Reads what was appended since the last call, or all of it where the file does not go on with what
 * was read: then none of the old names stays. A line that is still without its end is left for the
 * next call. -EBADMSG: not a regular file. -EAGAIN: there is more to be read, by further calls.
 */
int perf_map_update(struct perf_map *m, int fd);
/* A part of the file is not read yet. */
bool perf_map_is_behind(const struct perf_map *m);
/* The name at PC; lives until the next update. */
bool perf_map_lookup(
	const struct perf_map *m, uint64_t pc, const char **ret_name, uint64_t *ret_start);

/* What a map held at some time. */
struct perf_map_mark {
	uint32_t epoch, text_bytes;
};
struct perf_map_mark perf_map_mark(const struct perf_map *m);
/* Forgets the lines that were read since MARK. What they covered has no name. */
void perf_map_roll_back(struct perf_map *m, const struct perf_map_mark *mark);
/* Whether FD is as it was at the last update, by its times. */
bool perf_map_is_unchanged(const struct perf_map *m, int fd);
/* Gives the memory back; the next update reads the file from its beginning. */
void perf_map_let_go(struct perf_map *m);

/* Functions that a PC can still be in, by the lines of this map's own file. */
size_t perf_map_count(const struct perf_map *m);
/* Functions that were dropped because there were too many. */
uint64_t perf_map_dropped(const struct perf_map *m);
size_t perf_map_bad_lines(const struct perf_map *m);
size_t perf_map_bytes(const struct perf_map *m);
