/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pending payloads, in a directory that survives kill -9: append-only segments, a checksum per
 * record, one cursor per target. Bounded in bytes and age; the oldest are dropped first and
 * counted. base/settled_clock.h judges ages: a wall clock that is briefly wrong costs nothing.
 * Knows nothing of networks. Single-threaded.
 *
 * Layout:
 *   version               "fathom-spool 1"; a directory of a newer version is left alone
 *   0123456789abcdef.seg  records, back to back (agent/server/export/spool/segment.h); each
 *                         start begins a new one
 *   NAME-HASH.cursor      a target's position; replaced by rename, except on a full disk
 *   rejected/             payloads a server refused: NAME.pb.gz and, as text, NAME.txt
 *
 * Durability: spool_put() returns after write(2), so the payload survives any death of the process.
 * fdatasync(2) follows when a segment ends, when the spool is closed, and in spool_upkeep() for
 * data written more than SPOOL_SYNC_NS before. A power cut loses payloads written since, or makes a
 * target receive some again. Payloads sent at once are never synced: while the servers answer, the
 * spool uses only the page cache.
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
	 * Unique names that identify targets regardless of their place in the settings. Each target
	 * receives payloads in order.
	 */
	const char *const *targets;
	const char *const *old_targets; /* names in earlier versions' cursors; NULL = none */
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
	SPOOL_DROP_REMOVED, /* somebody else removed it from the directory */
	SPOOL_DROPS
};

/*
 * Full and read-only disks, corrupt records and a directory of a newer version are not errors: what
 * the disk does not take is kept in memory, bounded, and counted. -EBUSY: another process uses the
 * directory; -EPERM: it belongs to another user or others can write to it.
 */
int spool_create(const struct spool_options *options, struct spool **ret_spool);
void spool_destroy(struct spool *s);
/*
 * Replaces the targets. One that remains keeps its position and its counts, a new one begins with
 * the next payload, and payloads pending for a removed one are abandoned and counted. -ENOMEM,
 * -E2BIG: nothing has changed.
 */
int spool_set_targets(struct spool *s, const char *const *targets, size_t target_count);
void spool_set_limits(struct spool *s, uint64_t limit_bytes, uint64_t limit_age_ns);
/* How many times somebody else was found to have removed files of the spool. */
uint64_t spool_removals(const struct spool *s);
/* Payloads abandoned because their targets were removed. */
uint64_t spool_abandoned(const struct spool *s);
/* Why nothing is kept on disk, for the log; NULL when all is well. */
const char *spool_trouble(const struct spool *s);
/*
 * Returns 0 if the payload is stored and survives a kill; 1 if it is only in memory until the disk
 * takes it; -E2BIG if it is larger than the whole spool.
 */
int spool_put(struct spool *s, const struct payload *payload);
/*
 * The oldest payload that TARGET has not acknowledged. -ENOENT: none. Deinit RET_PAYLOAD. Records
 * that are damaged or too old are skipped and counted.
 */
int spool_peek(struct spool *s, size_t target, struct payload *ret_payload);
/* The number of the record that spool_peek() returned last; a record keeps its number. */
uint64_t spool_peeked(const struct spool *s, size_t target);
/* The payload after the one that spool_peek() returned last. */
int spool_peek_second(struct spool *s, size_t target, struct payload *ret_payload);
/*
 * Marks the payload peeked last as being sent to TARGET, on disk before this returns. Returns true
 * if it may have arrived before: a process began to send it and died, or it was left in doubt.
 */
bool spool_begin(struct spool *s, size_t target);
/*
 * A begun payload ends in one of these two or, when TARGET no longer needs it, in spool_advance(),
 * spool_advance_second() or spool_reject(). It did certainly not arrive:
 */
void spool_not_sent(struct spool *s, size_t target);
/* It may have arrived. */
void spool_in_doubt(struct spool *s, size_t target);
/* TARGET is done with the payload that spool_peek() returned last. */
int spool_advance(struct spool *s, size_t target);
/* TARGET is done with the one from spool_peek_second(), but not yet with the one before it. */
int spool_advance_second(struct spool *s, size_t target);
/* Sets the first aside (bounded, for a person to look at) and advances TARGET past it. */
int spool_reject(struct spool *s, size_t target, const char *reason);
/*
 * Call periodically: syncs, drops what is too old, moves records from memory to disk, and detects
 * files that somebody removed.
 */
void spool_upkeep(struct spool *s);
uint64_t spool_dropped(const struct spool *s, size_t target, enum spool_drop why);
/* Payloads that TARGET has not acknowledged; an upper bound if some were damaged. */
uint64_t spool_pending(const struct spool *s, size_t target);
uint64_t spool_memory_records(const struct spool *s); /* lost if the process dies */
uint64_t spool_bytes(const struct spool *s); /* on disk and in memory, without rejected/ */
uint64_t spool_oldest_ns(const struct spool *s, int64_t now_real_ns); /* age; 0 = empty */
