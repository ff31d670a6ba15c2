/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A file's identity by content: OpenTelemetry's `process.executable.build_id.htlhash`
 * (https://opentelemetry.io/docs/specs/otel/profiles/mappings/), the first 16 bytes of the SHA-256
 * of the file's first 4096 bytes, its last 4096 bytes (they may overlap) and its length as eight
 * bytes, big-endian. Parca's agent calls it the file ID. The SHA-256 is nettle's: it uses the CPU's
 * SHA instructions and brings no other library along.
 *
 * pprof has no field for it, so profiles carry it as a comment, `#htlhash MAPPING-ID HEX`. Tools do
 * not show comments that begin with '#'.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	FILE_HASH_BYTES = 16,
	FILE_HASH_TEXT_BYTES = 2 * FILE_HASH_BYTES + 1,
	FILE_HASH_COMMENT_BYTES = 64,
};

/* All 0 = none. */
struct file_hash {
	uint8_t bytes[FILE_HASH_BYTES];
};

static inline bool file_hash_equal(const struct file_hash *a, const struct file_hash *b)
{
	return !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static inline bool file_hash_is_none(const struct file_hash *hash)
{
	static const struct file_hash none;

	return file_hash_equal(hash, &none);
}

/* Hashes a whole file in memory. */
struct file_hash file_hash_of(const void *bytes, size_t size);
/* Hashes an open file, reading only both ends. Returns -ESTALE if it was truncated meanwhile. */
int file_hash_read(int fd, struct file_hash *ret_hash);
/* Lower-case hex, "" for none. */
void file_hash_format(const struct file_hash *hash, char text[FILE_HASH_TEXT_BYTES]);
void file_hash_comment(uint64_t mapping_id, const char *hex, char comment[FILE_HASH_COMMENT_BYTES]);
/* Parses such a comment; false if COMMENT is none. *RET_HEX points into COMMENT. */
bool file_hash_parse(const char *comment, uint64_t *ret_mapping_id, const char **ret_hex);
