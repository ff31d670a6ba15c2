/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared by spool.c, spool_disk.c, spool_cursor.c, spool_targets.c, spool_losses.c,
 * spool_rejected.c and spool_watch.c.
 */
#include "agent/server/export/spool/segment.h"
#include "agent/server/export/spool/spool.h"
#include "base/settled_clock.h"

enum {
	SPOOL_FILE_MODE = 0640,
	SPOOL_NAME_BYTES = 128,
	SPOOL_GAPS_LIMIT = 64,
};

/* Record numbers, inclusive. */
struct spool_range {
	uint64_t first, last;
};

struct spool_segment {
	uint64_t id; /* its file's name; ascending */
	uint64_t size; /* bytes */
	uint64_t records;
	uint64_t first, last; /* numbers of its records; valid if `records` is not 0 */
	int64_t oldest_ns, newest_ns; /* start of its records' windows */
	bool damaged_end; /* the bytes after the last record are damaged, not just unfinished */
};

/* A record kept in memory while the disk takes nothing. */
struct spool_memory {
	struct spool_memory *next;
	uint64_t number;
	int64_t time_ns;
	size_t size;
	uint8_t record[];
};

struct spool_target {
	char *name;
	/* Kept in its cursor file: numbers of records, 0 = none. */
	uint64_t next; /* all before are done */
	uint64_t begun, begun_second; /* may have been sent */
	uint64_t done_second; /* done, although `next` is smaller */

	uint64_t doubtful; /* all up to this one may have been sent: the cursor was lost */
	uint64_t peeked, peeked_second;
	uint64_t last_begun; /* by spool_begin(), for spool_not_sent() */
	bool begun_before;
	uint64_t under_way; /* begun and not answered yet; 0 = none */
	bool under_way_lost; /* it was dropped before its answer, for this reason: */
	enum spool_drop under_way_why;
	uint64_t place_segment, place_offset; /* where the search for `next` starts */
	bool unwritten; /* the cursor on disk is out of date */
	bool opened;
	uint64_t dropped[SPOOL_DROPS];
};

struct spool {
	int fd; /* the directory, locked; -1 = memory only */
	char *path;
	bool replaced; /* by another directory that could not be opened yet */
	uint64_t removals; /* times that files were found to be missing */
	const char *trouble;
	uint64_t limit_bytes, limit_age_ns, segment_bytes;
	struct settled_clock age_clock; /* ages are judged by this clock */
	struct metrics *metrics;
	struct spool_target targets[SPOOL_TARGETS_LIMIT];
	size_t target_count;
	uint64_t abandoned; /* records pending for removed targets */
	uint64_t next_number;

	struct spool_segment *segments; /* ascending */
	size_t segment_count, segment_capacity;
	uint64_t disk_bytes, next_segment;
	int write_fd; /* the last segment; -1 = none is being written */
	uint64_t unsynced_ns; /* CLOCK_MONOTONIC of the first unsynced write; 0 = none */

	struct spool_memory *memory_head, *memory_tail;
	uint64_t memory_bytes;

	struct spool_range gaps[SPOOL_GAPS_LIMIT]; /* lost and counted; disjoint, not adjacent */
	size_t gap_count;
};

/* spool_disk.c */
int spool_disk_open(struct spool *s, const char *directory);
void spool_disk_close(struct spool *s);
/*
 * Makes room and begins a new segment if the last is full. The record is written whole or not at
 * all.
 */
int spool_disk_append(
	struct spool *s, uint64_t number, int64_t time_ns, const void *record, size_t size);
/*
 * The first record numbered WANT or above: *RET_FD, the caller's to close, is its file. Moves PLACE
 * there. -ESTALE: a file is missing, call spool_watch().
 */
int spool_disk_find(const struct spool *s, uint64_t want, struct spool_target *place, int *ret_fd,
	struct segment_record *ret_record);
void spool_disk_sync(struct spool *s);
/* Removes segment AT; its records are lost for the targets that wait for them. */
void spool_disk_drop(struct spool *s, size_t at, enum spool_drop why);
bool spool_disk_is_gone(const struct spool *s, size_t at); /* whether its file is missing */
/* Removes the segments that no target needs. */
void spool_disk_release(struct spool *s);
/* The newest window on disk; INT64_MAX if there is none. */
int64_t spool_disk_newest_ns(const struct spool *s);
/* Removes the segments without a window younger than BEFORE_NS. */
void spool_disk_expire(struct spool *s, int64_t before_ns);

/* spool_cursor.c */
/* Reads TARGET's cursor; `next` stays 0 if it has none. */
void spool_cursor_load(struct spool *s, struct spool_target *target);
void spool_cursor_store(struct spool *s, struct spool_target *target);
bool spool_cursor_is_gone(const struct spool *s, const struct spool_target *target);
void spool_cursor_remove(struct spool *s, const struct spool_target *target);
/* Renames the cursor that earlier versions kept under OLD_NAME to NAME, if NAME has none. */
void spool_cursor_adopt(struct spool *s, const char *old_name, const char *name);
/* Removes the cursors of unknown targets, and counts the records pending for those. */
void spool_cursors_retire(struct spool *s);
/* A hash that distinguishes targets in file names. */
uint32_t spool_target_tag(const struct spool_target *target);

/* spool_watch.c */
/* Counts what somebody removed from the directory, and makes the directory usable again. */
void spool_watch(struct spool *s);
/* Like spool_watch(), but only if the segment being written or the directory is missing. */
void spool_watch_writing(struct spool *s);

/* spool_targets.c */
/* Counts RECORDS that were pending for removed targets. */
void spool_abandon(struct spool *s, uint64_t records);
void spool_targets_deinit(struct spool *s);

/* spool_rejected.c: keeps PAYLOAD for a person to look at, and removes older ones. */
void spool_rejected_keep(struct spool *s, const struct spool_target *target, uint64_t number,
	const struct payload *payload, const char *reason);

/* spool_losses.c */
/* Records FIRST to LAST are lost: counts them for each target that waits for them. */
void spool_lose(struct spool *s, uint64_t first, uint64_t last, enum spool_drop why);
/* How many of the records FIRST to LAST the target waits for, without those lost and counted. */
uint64_t spool_awaited(
	const struct spool *s, const struct spool_target *target, uint64_t first, uint64_t last);
/*
 * The record under way was answered. If it was dropped meanwhile it counts as lost, unless SETTLED:
 * the server has it, or it was set aside.
 */
void spool_target_answered(struct spool_target *target, bool settled);

/* spool.c: all records before NEXT are done or lost. */
void spool_target_go_to(struct spool_target *target, uint64_t next);
