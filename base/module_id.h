/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What makes two mapped files the same module: the GNU build ID, or where there is none device,
 * inode, modification time and size, and always the content as far as a hash of its ends tells. A
 * build ID is no more than what a file says of itself: any container can have a file with that of
 * our libc and other code. Compared and hashed as bytes.
 *
 * A file that could not be looked at has no content hash. It is known by what the kernel says of
 * it, device, inode and generation, and nothing else is the same module.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/file_hash.h"

enum { BUILD_ID_MAX_BYTES = 20, MODULE_ID_TEXT_BYTES = 2 * 40 + 2 };

struct build_id {
	uint8_t size; /* 0 = none */
	uint8_t bytes[BUILD_ID_MAX_BYTES];
};

struct file_id {
	uint64_t device; /* as stat() gives it, or makedev() of the kernel's major and minor */
	uint64_t inode;
	uint64_t mtime_ns; /* 0 where the source does not tell (a side-band record) */
	uint64_t size_bytes; /* likewise */
	uint64_t generation; /* of the inode number; 0 where the source does not tell (stat) */
};

struct module_id {
	struct build_id build_id;
	struct file_hash content; /* all 0 = the file could not be looked at, or is none (vDSO) */
	struct file_id file; /* all 0 when there are both a build ID and a content hash */
};

static inline bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static inline bool module_id_equal(const struct module_id *a, const struct module_id *b)
{
	return build_id_equal(&a->build_id, &b->build_id) &&
	       file_hash_equal(&a->content, &b->content) &&
	       !memcmp(&a->file, &b->file, sizeof(a->file));
}

uint64_t module_id_hash(const struct module_id *id);
/* Lower-case hex of a build ID into TEXT (at least 41 bytes); "" for none. */
void build_id_format(const struct build_id *id, char *text, size_t size);
/*
 * A name for a file: the build ID's hex, or `i` and a 128-bit hash of the file identity, then `-`
 * and the content hash's hex.
 */
void module_id_format(const struct module_id *id, char *text, size_t size);
