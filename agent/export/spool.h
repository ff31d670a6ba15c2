/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Payloads on their way, in a directory that survives kill -9: append-only segments, a checksum per
 * record, one cursor per target. Bounded in bytes and age, the oldest dropped first and counted.
 * Knows nothing of networks. One thread.
 */
#include <stddef.h>
#include <stdint.h>

#include "agent/export/payload.h"
#include "base/metrics.h"

struct spool;

struct spool_options {
	const char *directory;
	uint64_t limit_bytes;
	uint64_t limit_age_ns; /* 0 = none */
	const char *const *targets; /* names; the order of payloads is kept for each */
	size_t target_count;
	struct metrics *metrics;
};

/* Full and read-only disks, corrupt records and a directory of a newer version are no reason to
 * fail: what cannot be kept on disk is kept in memory, bounded, and counted. -EBUSY: another
 * process has it. */
int spool_create(const struct spool_options *options, struct spool **ret_spool);
void spool_destroy(struct spool *s);
/* Acknowledged when it returns 0: it will be there after a kill. */
int spool_put(struct spool *s, const struct payload *payload);
/* The oldest payload that TARGET has not acknowledged. -ENOENT: none. Deinit RET_PAYLOAD. */
int spool_peek(struct spool *s, size_t target, struct payload *ret_payload);
/* TARGET is done with what spool_peek gave last. */
int spool_advance(struct spool *s, size_t target);
/* It is set aside (bounded, for a person to look at), and TARGET is done with it. */
int spool_reject(struct spool *s, size_t target, const char *reason);
uint64_t spool_bytes(const struct spool *s);
uint64_t spool_oldest_ns(const struct spool *s, int64_t now_real_ns); /* age; 0 = empty */
