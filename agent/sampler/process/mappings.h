/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A snapshot of a process's executable mappings, sorted and without overlaps. Shared by reference
 * (a fork costs nothing); a change makes a new snapshot unless nobody else holds this one. The only
 * place where a pc of a process becomes a file offset of a module.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/module_id.h"

struct module;

struct mapping {
	uint64_t start, end; /* pc, end exclusive */
	uint64_t file_off; /* of `start`, bytes; equals `start` without a file */
	struct module *module; /* never NULL; memory without a file has one of its own kind */
	/* The file as it was when `module` was determined; a field of 0 is unknown or absent. */
	struct file_id file;
};

/* A mapping as the kernel's own table had it at the time of a sample. */
struct seen_mapping {
	uint64_t start, end, file_off;
	struct file_id file; /* all 0 = memory without a file */
	/*
	 * Device and inode that /proc shows instead (an overlay's own file); 0 = those of `file`.
	 */
	struct file_id shown;
	bool vdso; /* the vDSO, which has no file */
};

struct mappings; /* reference-counted */

enum { MAPPINGS_LIMIT = 65536 }; /* in one process; more are refused with -E2BIG */

struct mappings *mappings_create(void); /* empty; NULL = out of memory */
struct mappings *mappings_ref(struct mappings *m);
void mappings_unref(struct mappings *m);
/*
 * Adds MAPPING, cutting or removing what it overlaps. If *M is shared, a changed copy replaces it.
 * Returns -E2BIG over MAPPINGS_LIMIT or -ENOMEM, with *M unchanged.
 */
int mappings_add(struct mappings **m, const struct mapping *mapping);
/* The ranges that A and B map to the same place of the same module. NULL = out of memory. */
struct mappings *mappings_common(const struct mappings *a, const struct mappings *b);
/* The mapping that holds PC, or NULL. */
const struct mapping *mappings_find(const struct mappings *m, uint64_t pc);
size_t mappings_count(const struct mappings *m);
const struct mapping *mappings_at(const struct mappings *m, size_t number);
/*
 * Whether M maps what SEEN shows: the same bytes of the same file, which was not written to since
 * `module` was determined.
 */
bool mapping_is_seen(const struct mapping *m, const struct seen_mapping *seen);
/*
 * A 64-bit hash of what pcs mean. It differs between snapshots that map a pc to another module or
 * elsewhere in it; equal snapshots (after a fork, or without address randomization) have equal
 * hashes. Never 0.
 */
uint64_t mappings_generation(const struct mappings *m);
/* PC as a file offset of the mapping's module; PC itself without a file. */
static inline uint64_t mapping_file_off(const struct mapping *m, uint64_t pc)
{
	return pc - m->start + m->file_off;
}
