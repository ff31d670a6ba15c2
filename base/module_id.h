/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Identity of a module. Two mapped files are the same module if they have the same build ID (or,
 * without one, the same device, inode, modification time and size) and the same content hash. The
 * build ID alone is not enough: it is only a claim, and any container can have a file with our
 * libc's build ID and other code. It is read by the kernel or by a sandboxed child, the content
 * hash by the process that compares them. Identities are compared and hashed as bytes.
 *
 * A file that could not be read has no content hash. It is identified by the kernel's device, inode
 * and generation, and equals no other module.
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
	uint64_t device; /* st_dev, or makedev() of the kernel's major and minor */
	uint64_t inode;
	uint64_t mtime_ns; /* since 1970; 0 = unknown (side-band records do not have it) */
	uint64_t size_bytes; /* 0 = unknown (side-band records do not have it) */
	uint64_t generation; /* of the inode number; 0 = unknown (stat() does not have it) */
};

struct module_id {
	struct build_id build_id; /* what the file claims */
	struct file_hash
		content; /* what was seen of it; all 0 = could not be read, or not a file (vDSO) */
	struct file_id file; /* all 0 if there are both a build ID and a content hash */
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
/* Writes the build ID as lower-case hex to TEXT (at least 41 bytes); "" for none. */
void build_id_format(const struct build_id *id, char *text, size_t size);
/*
 * Writes a file name for the module: the build ID in hex, or `i` and a 128-bit hash of the file
 * identity; then, if there is a content hash, `-` and its hex.
 */
void module_id_format(const struct module_id *id, char *text, size_t size);
