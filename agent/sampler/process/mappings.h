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
	uint64_t file_off; /* of `start` in the file, bytes; what is no file has `start` here */
	struct module *module; /* never NULL; what is no file has a module of its own kind */
	/* The file, as it was when `module` was found out; what is 0 is not known, or is none. */
	struct file_id file;
};

/* A mapping as the kernel's own table had it at the time of a sample. */
struct seen_mapping {
	uint64_t start, end, file_off;
	struct file_id file; /* all 0 = memory without a file */
	/* What /proc shows in its place (an overlay's own file): device and inode; 0 = the same. */
	struct file_id shown;
	bool vdso; /* and so no file */
};

struct mappings; /* reference-counted */

enum { MAPPINGS_LIMIT = 65536 }; /* in one process; more are refused with -E2BIG */

struct mappings *mappings_create(void); /* empty; NULL = out of memory */
struct mappings *mappings_ref(struct mappings *m);
void mappings_unref(struct mappings *m);
/*
 * Puts MAPPING in, cutting or removing what it overlaps. *M is replaced by a changed copy when it
 * is shared. Unchanged on failure.
 */
int mappings_add(struct mappings **m, const struct mapping *mapping);
/* What A and B agree on: the same place of the same module. NULL = out of memory. */
struct mappings *mappings_common(const struct mappings *a, const struct mappings *b);
/* The mapping that holds PC, or NULL. */
const struct mapping *mappings_find(const struct mappings *m, uint64_t pc);
size_t mappings_count(const struct mappings *m);
const struct mapping *mappings_at(const struct mappings *m, size_t number);
/*
 * Whether M is what was SEEN: the same bytes of the same file, which was not written to since
 * `module` was found out.
 */
bool mapping_is_seen(const struct mapping *m, const struct seen_mapping *seen);
/*
 * A 64-bit hash of what pcs mean: differs between any two snapshots where a pc is in another
 * module, or elsewhere in it; equal ones (after a fork, or without address randomization) have the
 * same. Never 0.
 */
uint64_t mappings_generation(const struct mappings *m);
/* PC as a file offset of the mapping's module; for what is no file it stays the pc. */
static inline uint64_t mapping_file_off(const struct mapping *m, uint64_t pc)
{
	return pc - m->start + m->file_off;
}
