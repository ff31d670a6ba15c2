/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the spool's files share: spool.c, spool_disk.c, spool_cursor.c, spool_targets.c,
 * spool_losses.c, spool_rejected.c, spool_watch.c.
 */
#include "agent/server/export/spool/segment.h"
#include "agent/server/export/spool/spool.h"
#include "base/settled_clock.h"

enum {
	SPOOL_FILE_MODE = 0640,
	SPOOL_NAME_BYTES = 128,
	SPOOL_GAPS_LIMIT = 64,
};

/* Numbers of records, both included. */
struct spool_range {
	uint64_t first, last;
};

struct spool_segment {
	uint64_t id; /* its file's name; ascending */
	uint64_t size; /* bytes */
	uint64_t records;
	uint64_t first, last; /* numbers of its records; only with RECORDS */
	int64_t oldest_ns, newest_ns; /* windows of its records */
	bool damaged_end; /* bytes behind the last record are none that was merely not finished */
};

/* Kept as long as the disk takes nothing. */
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

	uint64_t doubtful; /* all up to this may have been sent: the cursor was lost */
	uint64_t peeked, peeked_second;
	uint64_t last_begun; /* by spool_begin: for spool_not_sent */
	bool begun_before;
	uint64_t under_way; /* begun and not answered yet; 0 = none */
	bool under_way_lost; /* meanwhile it was dropped, for: */
	enum spool_drop under_way_why;
	uint64_t place_segment, place_offset; /* where `next` is looked for */
	bool unwritten; /* the cursor on disk is older */
	bool opened;
	uint64_t dropped[SPOOL_DROPS];
};

struct spool {
	int fd; /* the directory, locked; -1 = memory only */
	char *path;
	bool replaced; /* by a directory that could not be opened yet */
	uint64_t removals; /* times that files were found to be gone */
	const char *trouble;
	uint64_t limit_bytes, limit_age_ns, segment_bytes;
	struct settled_clock age_clock; /* what is too old is judged by this */
	struct metrics *metrics;
	struct spool_target targets[SPOOL_TARGETS_LIMIT];
	size_t target_count;
	uint64_t abandoned; /* records that waited for targets which have gone */
	uint64_t next_number;

	struct spool_segment *segments; /* ascending */
	size_t segment_count, segment_capacity;
	uint64_t disk_bytes, next_segment;
	int write_fd; /* of the last segment; -1 = none is being written */
	uint64_t unsynced_ns; /* CLOCK_MONOTONIC of the first write that was not synced; 0 = none */

	struct spool_memory *memory_head, *memory_tail;
	uint64_t memory_bytes;

	struct spool_range gaps[SPOOL_GAPS_LIMIT]; /* lost and counted; apart from each other */
	size_t gap_count;
};

/* spool_disk.c */
int spool_disk_open(struct spool *s, const char *directory);
void spool_disk_close(struct spool *s);
/* Makes room, begins a new segment where one is full. The record is whole on disk, or not there. */
int spool_disk_append(
	struct spool *s, uint64_t number, int64_t time_ns, const void *record, size_t size);
/*
 * The first record of number WANT or above, opened: *RET_FD is the caller's to close. Moves
 * PLACE there. -ESTALE: a file is gone, spool_watch() is to be called.
 */
int spool_disk_find(const struct spool *s, uint64_t want, struct spool_target *place, int *ret_fd,
	struct segment_record *ret_record);
void spool_disk_sync(struct spool *s);
/* Removes segment number AT, with what targets still wait for. */
void spool_disk_drop(struct spool *s, size_t at, enum spool_drop why);
bool spool_disk_is_gone(const struct spool *s, size_t at); /* somebody removed its file */
/* Removes the segments that no target needs. */
void spool_disk_release(struct spool *s);
/* The newest window on the disk; INT64_MAX where there is none. */
int64_t spool_disk_newest_ns(const struct spool *s);
/* Removes the segments that hold nothing younger than BEFORE_NS. */
void spool_disk_expire(struct spool *s, int64_t before_ns);

/* spool_cursor.c */
/* Sets what its cursor says; `next` stays 0 where the target has none. */
void spool_cursor_load(struct spool *s, struct spool_target *target);
void spool_cursor_store(struct spool *s, struct spool_target *target);
bool spool_cursor_is_gone(const struct spool *s, const struct spool_target *target);
void spool_cursor_remove(struct spool *s, const struct spool_target *target);
/* The cursor that earlier versions kept under OLD_NAME becomes that of NAME, if that has none. */
void spool_cursor_adopt(struct spool *s, const char *old_name, const char *name);
/* Removes the cursors that are no target's, and counts what waited for those. */
void spool_cursors_retire(struct spool *s);
/* Tells a target from others, for file names. */
uint32_t spool_target_tag(const struct spool_target *target);

/* spool_watch.c */
/* Counts what somebody removed from the directory, and makes it usable again. */
void spool_watch(struct spool *s);
/* The same where the segment that is being written is gone, or the directory. */
void spool_watch_writing(struct spool *s);

/* spool_targets.c */
/* RECORDS waited for targets that are none any more. */
void spool_abandon(struct spool *s, uint64_t records);
void spool_targets_deinit(struct spool *s);

/* spool_rejected.c: keeps it for a person to look at, and lets go of older ones. */
void spool_rejected_keep(struct spool *s, const struct spool_target *target, uint64_t number,
	const struct payload *payload, const char *reason);

/* spool_losses.c */
/* Records of numbers FIRST to LAST are gone: counts them for each target that waits for them. */
void spool_lose(struct spool *s, uint64_t first, uint64_t last, enum spool_drop why);
/* How many of the numbers FIRST to LAST the target waits for; those lost and counted are none. */
uint64_t spool_awaited(
	const struct spool *s, const struct spool_target *target, uint64_t first, uint64_t last);
/*
 * What was under way has an answer. If the record was dropped meanwhile, it is lost after all,
 * unless SETTLED: the server has it, or it was set aside.
 */
void spool_target_answered(struct spool_target *target, bool settled);

/* spool.c: all before number NEXT are done or lost. */
void spool_target_go_to(struct spool_target *target, uint64_t next);
