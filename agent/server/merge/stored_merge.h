/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Many stored profiles as one. Either the sums of equal samples, as `go tool pprof` would make
 * them; or by file, with the samples of each file apart, so that whoever has the merge has the
 * files: each sample then has the label `fathom_file` with the number of its file, and comments
 * tell what the files are, in order of their numbers from 1 on:
 *
 *     file PERIOD TYPE PATH  the period and the main type of its samples, its path in the store
 *     comment TEXT           of the file before
 *     unread PATH            it has no number: it is no valid profile, or larger than any of ours
 *
 * Each minute of a file of minutes counts as a file: its PATH has `#N` behind it, N from 1 on.
 *
 * Or by slice: the same, but what is told as a file is all that begins in the same slice of time,
 * with the PATH `slice/BEGIN_MS`, without the labels that matter only while processes and threads
 * live (the numbers whose unit is `id`). Files must come in the order of their slices.
 *
 * Or what replaces the files in the store: without those labels, too, and for minutes with the
 * label `fathom_minute`, from 1 on. The sum of each value is that of the files. There is no such
 * merge if anything of them does not fit; files that are damaged have nothing to add.
 *
 * Stored samples have the label `fathom_group`: the process group, cleaned (agent/daemon/groups.h).
 *
 * Files may have different sample types; a sample has 0 of those that its file lacks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "pprof/pprof_read.h"

struct stored_merge;

enum stored_merge_form {
	STORED_MERGE_SUM,
	STORED_MERGE_BY_FILE,
	STORED_MERGE_MINUTES, /* replaces windows */
	STORED_MERGE_REPLACE, /* replaces windows or minutes */
	STORED_MERGE_BY_SLICE,
};

static inline bool stored_merge_replaces(enum stored_merge_form form)
{
	return form == STORED_MERGE_MINUTES || form == STORED_MERGE_REPLACE;
}

/* Whether samples say which file or slice they are of. */
static inline bool stored_merge_keeps_apart(enum stored_merge_form form)
{
	return form == STORED_MERGE_BY_FILE || form == STORED_MERGE_BY_SLICE;
}

struct stored_merge_source {
	const char *path;
	const char *group; /* of samples that do not say it; "" = none */
	/* Bits: which minutes are wanted, and which the file has; 0 = it has no minutes. */
	unsigned int minutes, all_minutes;
	unsigned int minute; /* STORED_MERGE_MINUTES: that of its samples, from 0 on */
	uint64_t slice_ms; /* STORED_MERGE_BY_SLICE: the beginning of its slice, since 1970 */
};

struct stored_merge_options {
	/* Whose samples; NULL or "" = everybody's. */
	const char *comm; /* value of the label `comm` */
	const char
		*container; /* value of the label `container_id`, or its first 12 digits or more */
	const char *group; /* of the samples or their file */
	enum stored_merge_form form;
	size_t limit_bytes; /* of memory, and of the encoded message; 0 = 64 MiB */
};

/* OPTIONS's texts are borrowed. */
int stored_merge_create(
	const struct stored_merge_options *options, struct stored_merge **ret_merge);
void stored_merge_destroy(struct stored_merge *m);
/*
 * Adds the selected samples of PROFILE, of pprof_read_at(). One with stacks or labels beyond the
 * limits of pprof.h is unread. After an error (-E2BIG: over the limit, -ENOMEM) the merge is
 * incomplete and may only be destroyed.
 */
int stored_merge_add(struct stored_merge *m, const struct stored_merge_source *source,
	const struct pprof_read *profile);
/* SOURCE cannot be read. */
int stored_merge_unread(struct stored_merge *m, const struct stored_merge_source *source);
/* How many it has so far. */
size_t stored_merge_samples(const struct stored_merge *m);
/* Appends the profile, compressed. The same calls give the same bytes. */
int stored_merge_encode(struct stored_merge *m, struct buffer *out);
