/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One file of the spool: records back to back, each with its own checksums, so that damage to one
 * record, by a crash or a bad disk, costs no other. A record is
 *
 *   magic u32, size of the body u32, number u64, time_ns i64, xxh3 of the body u64,
 *   xxh3 of the 32 bytes before u64
 *   body: time_ns i64, duration_ns i64, raw_bytes u64, samples u64, label count u16,
 *         per label: size of the name u16, of the value u16, both without NUL; then the pprof
 *
 * (little-endian). Numbers only grow within a spool. Reads use pread(2) only.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/server/export/payload.h"

enum {
	SEGMENT_HEADER_BYTES = 40,
	SEGMENT_BODY_LIMIT = 64 << 20,
};

struct segment_record {
	uint64_t number;
	int64_t time_ns; /* start of the payload's window */
	uint64_t offset; /* offset of its header */
	uint64_t end; /* offset of the next record */
	uint64_t body_hash;
	bool after_damage; /* the bytes skipped since the requested offset are not a record */
};

/* Appends the record to OUT as one contiguous run of bytes. -E2BIG. */
int segment_encode(const struct payload *payload, uint64_t number, struct buffer *out);
/*
 * The first record at or after OFFSET and before END. -ENOENT: there is none; *RET_RECORD's
 * after_damage is then set unless the remaining bytes are the start of an unfinished record.
 */
int segment_next(int fd, uint64_t offset, uint64_t end, struct segment_record *ret_record);
/* -EBADMSG: the body does not match its checksum. */
int segment_payload(int fd, const struct segment_record *record, struct payload *ret_payload);
/* Decodes a record in memory, as segment_encode() made it. */
int segment_decode(const void *bytes, size_t size, struct payload *ret_payload);
