/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What makes two mapped files the same module: the GNU build ID where there is one, else device,
 * inode, modification time and size. Compared and hashed as bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
};

struct module_id {
	struct build_id build_id;
	struct file_id file; /* all 0 when there is a build ID */
};

static inline bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static inline bool module_id_equal(const struct module_id *a, const struct module_id *b)
{
	if (a->build_id.size || b->build_id.size)
		return build_id_equal(&a->build_id, &b->build_id);
	return !memcmp(&a->file, &b->file, sizeof(a->file));
}

uint64_t module_id_hash(const struct module_id *id);
/* Lower-case hex of a build ID into TEXT (at least 41 bytes); "" for none. */
void build_id_format(const struct build_id *id, char *text, size_t size);
/* A name for a file: the build ID's hex, or `i` and a 128-bit hash of the file identity. */
void module_id_format(const struct module_id *id, char *text, size_t size);
