/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Identity of a module: one inode, and what was read of it. Two files are never the same module,
 * because whatever is quickly compared can be forged: the build ID is only a claim, and the content
 * hash covers no more than a file's ends. So an index made from one file never answers for another.
 * Copies share their index if the two indexes turn out to be equal (symbolizer/builds/cache.h).
 *
 * The build ID is read by the kernel or by a sandboxed child, the content hash by the process that
 * compares them, the inode's numbers by base/file_state.h. Identities are compared and hashed as
 * bytes.
 *
 * A file that could not be read has no content hash. It is identified by the device, inode and
 * generation of its mapping, and equals no other module.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/file_hash.h"

enum { BUILD_ID_MAX_BYTES = 20, MODULE_ID_TEXT_BYTES = 40 + 2 * (1 + 32) + 1 };

struct build_id {
	uint8_t size; /* 0 = none */
	uint8_t bytes[BUILD_ID_MAX_BYTES];
};

/*
 * A file that was read has everything but a generation (base/file_state.h); one that is known from
 * a mapping has device, inode and generation.
 */
struct file_id {
	uint64_t device; /* st_dev, or makedev() of the kernel's major and minor */
	uint64_t inode;
	uint64_t mtime_ns; /* since 1970; 0 = unknown */
	uint64_t size_bytes; /* 0 = unknown */
	uint64_t generation; /* of the inode number; 0 = unknown */
	/*
	 * When the inode was made, which no user can set: a number that is used again is another
	 * file. Where the file system has no such time: of its last change. 0 = unknown.
	 */
	uint64_t birth_ns;
	uint64_t claimed; /* 1 = the other numbers may be lies: no index is kept on disk */
	/*
	 * ctime: of the last write, but also of the last rename, link or chmod. So it is not
	 * compared, but the index cache distinguishes files by it. 0 = unknown.
	 */
	uint64_t changed_ns;
};

struct module_id {
	struct build_id build_id; /* what the file claims */
	struct file_hash
		content; /* what was seen of it; all 0 = could not be read, or not a file (vDSO) */
	struct file_id file; /* all 0 = not a file (vDSO) */
};

/* How much of a file_id is compared. */
enum { FILE_ID_COMPARED_BYTES = offsetof(struct file_id, changed_ns) };

static inline bool file_id_equal(const struct file_id *a, const struct file_id *b)
{
	return !memcmp(a, b, FILE_ID_COMPARED_BYTES);
}

static inline bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static inline bool module_id_equal(const struct module_id *a, const struct module_id *b)
{
	return build_id_equal(&a->build_id, &b->build_id) &&
	       file_hash_equal(&a->content, &b->content) && file_id_equal(&a->file, &b->file);
}

uint64_t module_id_hash(const struct module_id *id);
/* Writes the build ID as lower-case hex to TEXT (at least 41 bytes); "" for none. */
void build_id_format(const struct build_id *id, char *text, size_t size);
/*
 * Writes a file name for the module: the build ID in hex, or `i` if there is none or the file was
 * not read; then `-` and the content hash, if there is one; then `-` and 128 bits of a SHA-256 of
 * the build ID and the file identity, ctime included, if there is one. module_id_format_copies()
 * leaves out the last part: what is left is common to all files with this build ID and content
 * hash.
 */
void module_id_format(const struct module_id *id, char *text, size_t size);
void module_id_format_copies(const struct module_id *id, char *text, size_t size);
