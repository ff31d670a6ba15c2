/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Payloads on their way, in a directory that survives kill -9: append-only segments, a checksum per
 * record, one cursor per target. Bounded in bytes and age, the oldest dropped first and counted.
 * Ages are judged by base/settled_clock.h: a wall clock that is wrong for a moment costs nothing.
 * Knows nothing of networks. One thread.
 *
 * What is where:
 *   version               "fathom-spool 1"; a directory of a newer version is left alone
 *   0123456789abcdef.seg  records, back to back (agent/server/export/spool/segment.h); a new one at
 * each start NAME-HASH.cursor      how far a target is; replaced by rename, but on a full disk
 *   rejected/             what a server calls bad: NAME.pb.gz and, as text, NAME.txt
 *
 * When bytes are safe: spool_put() returns after write(2): the payload survives any death of the
 * process at once. fdatasync(2) follows when a segment ends, when the spool is closed, and in
 * spool_upkeep() for what was written more than SPOOL_SYNC_NS before. A power cut costs what came
 * since, or has a target receive again what it had. What is sent at once is never synced: while the
 * servers answer, the spool costs the disk nothing but its cache.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/payload.h"
#include "base/metrics.h"

struct spool;

struct spool_options {
	const char *directory;
	uint64_t limit_bytes;
	uint64_t limit_age_ns; /* 0 = none */
	/*
	 * Names, each once: what a target is, not where it stands in the settings. The order of
	 * payloads is kept for each.
	 */
	const char *const *targets;
	const char *const *old_targets; /* their names in earlier versions' cursors; NULL = none */
	size_t target_count;
	struct metrics *metrics;
};

enum { SPOOL_TARGETS_LIMIT = 16 };

static const uint64_t SPOOL_SYNC_NS = 5000000000;

/* Why a target did not get a payload. */
enum spool_drop {
	SPOOL_DROP_LIMIT,
	SPOOL_DROP_AGE,
	SPOOL_DROP_CORRUPT,
	SPOOL_DROP_REMOVED, /* from the directory, by somebody else */
	SPOOL_DROPS
};

/*
 * Full and read-only disks, corrupt records and a directory of a newer version are no reason to
 * fail: what cannot be kept on disk is kept in memory, bounded, and counted. -EBUSY: another
 * process has it; -EPERM: it is somebody else's or writable by others.
 */
int spool_create(const struct spool_options *options, struct spool **ret_spool);
void spool_destroy(struct spool *s);
/*
 * The targets from now on. One that stays keeps its place and its counts, a new one begins with
 * what comes next, and what waits for one that is left out is given up and counted. -ENOMEM,
 * -E2BIG: nothing has changed.
 */
int spool_set_targets(struct spool *s, const char *const *targets, size_t target_count);
void spool_set_limits(struct spool *s, uint64_t limit_bytes, uint64_t limit_age_ns);
/* How many times files of the spool were found to be removed by somebody else. */
uint64_t spool_removals(const struct spool *s);
/* Payloads that were given up because their targets are none any more. */
uint64_t spool_abandoned(const struct spool *s);
/* Why nothing is kept on disk, for the log; NULL when all is well. */
const char *spool_trouble(const struct spool *s);
/*
 * 0: acknowledged, it will be there after a kill. 1: it is in memory only, until the disk takes it.
 * -E2BIG: it would not fit the whole spool.
 */
int spool_put(struct spool *s, const struct payload *payload);
/*
 * The oldest payload that TARGET has not acknowledged. -ENOENT: none. Deinit RET_PAYLOAD. Records
 * that are damaged or too old are passed over and counted.
 */
int spool_peek(struct spool *s, size_t target, struct payload *ret_payload);
/* The number of what spool_peek gave last; a record keeps its number. */
uint64_t spool_peeked(const struct spool *s, size_t target);
/* The one that comes after what spool_peek gave last. */
int spool_peek_second(struct spool *s, size_t target, struct payload *ret_payload);
/*
 * TARGET is about to be sent what was peeked last; kept on disk before this returns. True: it may
 * have arrived before: it was begun by a process that did not live to know, or left in doubt.
 */
bool spool_begin(struct spool *s, size_t target);
/*
 * What was begun ends in one of these two or, when TARGET needs it no more, in
 * spool_advance(), spool_advance_second() or spool_reject(). It did certainly not arrive:
 */
void spool_not_sent(struct spool *s, size_t target);
/* It may have arrived. */
void spool_in_doubt(struct spool *s, size_t target);
/* TARGET is done with what spool_peek gave last. */
int spool_advance(struct spool *s, size_t target);
/* TARGET is done with what spool_peek_second gave last, but not yet with the one before. */
int spool_advance_second(struct spool *s, size_t target);
/* The first is set aside (bounded, for a person to look at), and TARGET is done with it. */
int spool_reject(struct spool *s, size_t target, const char *reason);
/*
 * Now and then: syncs, lets go what is too old, moves to the disk what is in memory, and finds out
 * what somebody removed.
 */
void spool_upkeep(struct spool *s);
uint64_t spool_dropped(const struct spool *s, size_t target, enum spool_drop why);
/* Payloads that TARGET has not acknowledged; an upper bound where some were damaged. */
uint64_t spool_pending(const struct spool *s, size_t target);
uint64_t spool_memory_records(const struct spool *s); /* that end with the process */
uint64_t spool_bytes(const struct spool *s); /* on disk and in memory, without rejected/ */
uint64_t spool_oldest_ns(const struct spool *s, int64_t now_real_ns); /* age; 0 = empty */
